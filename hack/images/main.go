// Command images makes container images from files, without a container engine, and pushes or serves them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "images", Short: "Make container images from files, without a container engine",
		SilenceUsage: true, SilenceErrors: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	var file, dir, to string
	var insecure bool
	var o options
	required := func(cmd *cobra.Command, flag *string, name, usage string) {
		cmd.Flags().StringVar(flag, name, "", usage)
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}

	sources := &cobra.Command{Use: "sources", Short: "List the files that build needs for each architecture", Args: cobra.NoArgs}
	required(sources, &file, "recipe", "File that describes the images.")
	sources.RunE = func(cmd *cobra.Command, _ []string) error {
		recipe, err := readRecipe(file)
		if err != nil {
			return err
		}
		for _, arch := range architectures {
			for _, source := range recipe.sources(arch) {
				cmd.Println(arch, source)
			}
		}
		return nil
	}

	build := &cobra.Command{Use: "build", Short: "Write an archive (OCI layout, all architectures) for each image", Args: cobra.NoArgs}
	required(build, &file, "recipe", "File that describes the images. Paths in it are relative to the working directory.")
	required(build, &dir, "out", "Directory for the archives.")
	required(build, &o.Tag, "tag", "Tag and version of the images, e.g. v0.1.0.")
	build.Flags().StringVar(&o.Revision, "revision", "", "Commit that the files were made from. Empty: no label.")
	build.Flags().StringSliceVar(&o.Architectures, "arch", architectures, "Architectures to build for.")
	build.RunE = func(cmd *cobra.Command, _ []string) error { return buildAll(cmd, file, dir, o) }

	push := &cobra.Command{Use: "push ARCHIVE...", Short: "Push archives to a registry", Args: cobra.MinimumNArgs(1)}
	required(push, &to, "to", "Host and path before the name of the image, e.g. registry.example.com/team.")
	push.Flags().BoolVar(&insecure, "insecure", false, "Allow HTTP if the registry does not answer to HTTPS.")
	push.RunE = func(cmd *cobra.Command, files []string) error {
		return withArchives(files, func(archives []*archive) error {
			for _, archive := range archives {
				reference, err := archive.push(cmd.Context(), to, insecure, remote.WithAuthFromKeychain(authn.DefaultKeychain)) // of docker login or podman login
				if err != nil {
					return err
				}
				cmd.Println("pushed", reference)
			}
			return nil
		})
	}

	serve := &cobra.Command{Use: "serve ADDRESS [ARCHIVE...]", Short: "Serve a registry in memory, for tests, e.g. on 127.0.0.1:5000", Args: cobra.MinimumNArgs(1)}
	serve.RunE = func(cmd *cobra.Command, args []string) error {
		return withArchives(args[1:], func(archives []*archive) error {
			return serveRegistry(cmd.Context(), args[0], archives, func(address string) {
				cmd.Printf("serving %d images on %s\n", len(archives), address)
			})
		})
	}
	root.AddCommand(sources, build, push, serve)
	root.SetOut(os.Stdout)
	return root
}

func buildAll(cmd *cobra.Command, file, dir string, o options) (err error) {
	if o.Created, err = created(); err != nil {
		return err
	}
	recipe, err := readRecipe(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "IMAGE\tPLATFORM\tSIZE\tDIGEST\tARCHIVE") // Flush returns the error
	for _, image := range recipe.Images {
		index, err := image.build(recipe.Labels, o)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		archive, path := archive{image.Name, o.Tag, index}, filepath.Join(dir, image.shortName()+".tar")
		if err := archive.write(path); err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(table, "%s:%s\tall\t\t%s\t%s\n", image.Name, o.Tag, digest, path)
		if err := printPlatforms(table, index); err != nil {
			return err
		}
	}
	return table.Flush()
}

// printPlatforms prints for each architecture the digest, and the size that a node without any layer downloads.
func printPlatforms(table *tabwriter.Writer, index v1.ImageIndex) error {
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		size := manifest.Config.Size
		for _, layer := range manifest.Layers {
			size += layer.Size
		}
		_, _ = fmt.Fprintf(table, "\t%s\t%.1f MB\t%s\t\n", descriptor.Platform, float64(size)/1e6, descriptor.Digest)
	}
	return nil
}
