// Command images makes container images from files, without a container engine, and brings
// them to where they are pulled from.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

const usage = `Makes container images from files, without a container engine.

  images sources --recipe FILE                     list the files that build needs for each architecture
  images build --recipe FILE --out DIR --tag TAG   write an archive (OCI layout, all architectures) for each image
  images push --to PREFIX ARCHIVE...               push to a registry, e.g. --to registry.example.com
  images serve ADDRESS [ARCHIVE...]                serve a registry in memory, for tests, e.g. on 127.0.0.1:5000
`

// errUsage is what only other arguments can change.
var errUsage = errors.New("see images --help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given: sources, build, push or serve; %w", errUsage)
	}
	switch command, args := args[0], args[1:]; command {
	case "sources":
		return sources(args, out)
	case "build":
		return build(args, out)
	case "push":
		return push(ctx, args, out)
	case "serve":
		return serve(ctx, args, out)
	case "help", "-h", "--help":
		_, err := fmt.Fprint(out, usage)
		return err
	default:
		return fmt.Errorf("unknown command %q: must be sources, build, push or serve; %w", command, errUsage)
	}
}

// parse reads the flags of a command. Those that are required must not be empty.
func parse(flags *pflag.FlagSet, args []string, required ...string) error {
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, "\nFlags of ", flags.Name(), ":\n", flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%s: %w; %w", flags.Name(), err, errUsage)
	}
	for _, name := range required {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("%s: --%s is missing; %w", flags.Name(), name, errUsage)
		}
	}
	return nil
}
