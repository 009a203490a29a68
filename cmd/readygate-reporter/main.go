// Command readygate-reporter reports the health of a component on a node as a condition of the node.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/version"
)

func main() {
	var options reporter.Options
	flags := pflag.NewFlagSet("readygate-reporter", pflag.ContinueOnError)
	options.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.Usage = func() { fmt.Print(reporter.Usage, flags.FlagUsages()) }
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "readygate-reporter: %v; see --help\n", err)
		os.Exit(2)
	case *showVersion:
		fmt.Println("readygate-reporter", version.Version)
		return
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "readygate-reporter: unknown argument %q: configure checks with environment variables or --config=FILE, see --help\n", flags.Arg(0))
		os.Exit(2)
	}
	if err := options.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "readygate-reporter:", err)
		os.Exit(1)
	}
}
