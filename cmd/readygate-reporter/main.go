// Command readygate-reporter turns the health of a component on a node into a condition of
// that node.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/version"
)

func main() {
	var options reporter.Options
	flags := pflag.NewFlagSet("readygate-reporter", pflag.ExitOnError)
	options.AddFlags(flags)
	showVersion := flags.Bool("version", false, "Print the version and exit.")
	flags.Usage = func() { fmt.Fprint(os.Stderr, reporter.Usage, flags.FlagUsages()) }
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	switch {
	case *showVersion:
		fmt.Println("readygate-reporter", version.Version)
		return
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "readygate-reporter: unknown argument %q: what to check comes from variables or --config=FILE, see --help\n", flags.Arg(0))
		os.Exit(2)
	}
	if err := options.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "readygate-reporter:", err)
		os.Exit(1)
	}
}
