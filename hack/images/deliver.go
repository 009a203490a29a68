package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/hack/images/internal/oci"
	"github.com/readygate/readygate/hack/images/internal/registry"
)

func push(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("push", pflag.ContinueOnError)
	var to registry.Destination
	flags.StringVar(&to.Prefix, "to", "", "Where to push: host and path before the image's name, e.g. registry.example.com/team.")
	flags.BoolVar(&to.Insecure, "insecure", false, "Allow a registry that speaks HTTP only.")
	if err := parse(flags, args, "to"); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("push: no archive given, e.g. dist/images/*.tar; %w", errUsage)
	}
	return withArchives(flags.Args(), func(archives []*oci.Archive) error {
		for _, archive := range archives {
			reference, err := registry.Push(ctx, archive, to)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(out, "pushed", reference); err != nil {
				return err
			}
		}
		return nil
	})
}

func serve(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("serve: no address given, e.g. 127.0.0.1:5000; %w", errUsage)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", flags.Arg(0))
	if err != nil {
		return err
	}
	return withArchives(flags.Args()[1:], func(archives []*oci.Archive) error {
		return registry.Serve(ctx, listener, archives, func() {
			_, _ = fmt.Fprintf(out, "serving %d images on %s\n", len(archives), listener.Addr()) // nobody listening is no reason to end
		})
	})
}

// withArchives opens archives for as long as do runs.
func withArchives(files []string, do func([]*oci.Archive) error) error {
	var archives []*oci.Archive
	for _, file := range files {
		dir, err := os.MkdirTemp("", "images-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		archive, err := oci.Open(file, dir)
		if err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	return do(archives)
}
