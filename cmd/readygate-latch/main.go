// Command readygate-latch is the first init container of a held pod. It waits until the pod's network is ready.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/readygate/readygate/internal/latch"
	"github.com/readygate/readygate/internal/version"
)

// stopped is the exit status after SIGTERM, as of a process that the signal has ended: with status 0 the kubelet would
// start the next container of the pod.
const stopped = 128 + int(syscall.SIGTERM)

func main() {
	switch strings.Join(os.Args[1:], " ") {
	case "":
	case "--version":
		writeLine(os.Stdout, "readygate-latch "+version.Version)
		return
	case "--help", "-h":
		writeLine(os.Stdout, latch.Usage)
		return
	default:
		writeLine(os.Stderr, "readygate-latch: unknown arguments: only --help and --version are allowed; set environment variables instead, see --help")
		os.Exit(2)
	}
	signal.Ignore(syscall.SIGPIPE) // a latch whose output is closed keeps waiting
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	options := latch.FromEnvironment(os.Getenv, os.Stdout)
	options.Changes = latch.Watch(options.Dir)
	err := options.Run(ctx)
	stop()
	if err != nil {
		writeLine(os.Stderr, "readygate-latch: "+err.Error())
		os.Exit(stopped)
	}
}

// writeLine is fmt.Fprintln without package fmt, which would make the binary larger.
func writeLine(to io.Writer, line string) { _, _ = io.WriteString(to, line+"\n") }
