// Command demo plays a scenario: see docs/get-started/demo.md. It is started by make demo, in the root of
// the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/readygate/readygate/internal/demo"
)

// secondSignalAfter is how long after a first signal a second one ends the demo at once.
const secondSignalAfter = time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo BINARIES, e.g. demo bin/kube; variables: SCENARIO, ONCE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second Ctrl-C ends it at once. A signal to the whole process group may come twice within this time.
	context.AfterFunc(ctx, func() { time.AfterFunc(secondSignalAfter, stop) })
	options := &demo.Options{
		Scenario: os.Getenv("SCENARIO"), Root: ".", Binaries: os.Args[1], Logs: "bin/demo",
		Once: os.Getenv("ONCE") == "1", Out: os.Stdout,
	}
	os.Exit(code(options.Run(ctx)))
}

// code is the exit code: 130 as after any Ctrl-C.
func code(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "demo:", err)
	var unknown *demo.UnknownScenarioError
	switch {
	case errors.Is(err, demo.ErrInterrupted):
		return 130
	case errors.As(err, &unknown):
		return 2
	}
	return 1
}
