package latch

import (
	"io"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/core/latchkey"
)

// bootFile contains the boot ID that the kubelet reports for the node.
const bootFile = "/proc/sys/kernel/random/boot_id"

// sandboxFile is mounted into every container of a sandbox: the runtime writes it again for each one.
const sandboxFile = "/etc/hostname"

// longestDeadline is what the deadline of a rule may be at the most, in seconds.
const longestDeadline = 86400

// Usage is the help text.
const Usage = `readygate-latch is put into a pod as its first init container, and waits there until the pod's
network is ready. It ends with status 0 only when it was opened.

Variables:
  ` + latchkey.PodIP + `         the pod's address; a key must name it to open the latch
  ` + latchkey.Deadline + `       seconds after which the latch opens by itself, e.g. 60; empty: never
  ` + latchkey.PodName + `       the pod, for what is said about it
  ` + latchkey.PodNamespace + `  its namespace, likewise
The key is read from ` + latchkey.Volume + `/` + latchkey.File + `.

Flags:
  --help      Print this text and exit.
  --version   Print the version and exit.`

// FromEnvironment is a latch as the variables describe it, which logs to out. An invalid variable is logged
// and counts as empty.
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
