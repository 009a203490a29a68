package latch

import (
	"io"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/core/latchkey"
)

// bootFile contains the boot ID that the kubelet reports for the node.
const bootFile = "/proc/sys/kernel/random/boot_id"

// sandboxFile is mounted into every container of a sandbox. The runtime writes it for each sandbox.
const sandboxFile = "/etc/hostname"

// longestDeadline is the maximum of a rule's deadlineSeconds.
const longestDeadline = 86400

// Usage is the help text.
const Usage = `readygate-latch runs as the first init container of a pod and waits until the pod's network is ready.
It exits with status 0 only if the latch is open.

Environment variables:
  ` + latchkey.PodIP + `         the pod's address; a key opens the latch only if it contains this address
  ` + latchkey.Deadline + `       seconds after which the latch opens without a key, e.g. 60; empty: never
  ` + latchkey.PodName + `       the pod's name, for log lines; empty: HOSTNAME
  ` + latchkey.PodNamespace + `  the pod's namespace, for log lines
The key is read from ` + latchkey.Volume + `/` + latchkey.File + `.

Flags:
  --help      Print this text and exit.
  --version   Print the version and exit.`

// FromEnvironment returns the options in the environment variables, with a log to out. An invalid variable is logged, and
// counts as empty.
func FromEnvironment(getenv func(string) string, out io.Writer) *Options {
	options := &Options{
		Dir: latchkey.Volume, PodIP: getenv(latchkey.PodIP), BootFile: bootFile, SandboxFile: sandboxFile,
		Pod: getenv(latchkey.PodName), Namespace: getenv(latchkey.PodNamespace), Out: out,
	}
	if options.Pod == "" {
		options.Pod = getenv("HOSTNAME")
	}
	if text := getenv(latchkey.Deadline); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 || seconds > longestDeadline {
			logLine(out, latchkey.Deadline+" is "+strconv.Quote(text)+", must be seconds from 1 to "+strconv.Itoa(longestDeadline)+", e.g. "+latchkey.Deadline+"=60: waiting without a deadline")
			return options
		}
		options.Deadline = time.Duration(seconds) * time.Second
	}
	return options
}
