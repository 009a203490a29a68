// Command readygate-latch waits, as the first init container of a pod, until the pod's network is
// ready.
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

// stopped is the status of a latch that was terminated, as that of a process that SIGTERM ended: an
// init container with status 0 would let the pod go on.
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
		writeLine(os.Stderr, "readygate-latch: it takes no arguments but --help and --version: what it waits for comes from variables, see --help")
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

// writeLine does what fmt.Fprintln does, without the size of fmt.
func writeLine(to io.Writer, line string) { _, _ = io.WriteString(to, line+"\n") }
