package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/pflag"

	"github.com/readygate/readygate/hack/images/internal/oci"
	"github.com/readygate/readygate/hack/images/internal/recipe"
)

var architectures = []string{"amd64", "arm64"}

func sources(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("sources", pflag.ContinueOnError)
	file := flags.String("recipe", "", "File that says what images are made of.")
	archs := flags.StringSlice("arch", architectures, "Architectures to list for.")
	if err := parse(flags, args, "recipe"); err != nil {
		return err
	}
	r, err := recipe.Read(*file)
	if err != nil {
		return err
	}
	for _, arch := range *archs {
		for _, source := range r.Sources(arch) {
			if _, err := fmt.Fprintln(out, arch, source); err != nil {
				return err
			}
		}
	}
	return nil
}

func build(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("build", pflag.ContinueOnError)
	file := flags.String("recipe", "", "File that says what images are made of. Files that it names are seen from the working directory.")
	dir := flags.String("out", "", "Directory for the archives.")
	var options oci.Options
	flags.StringVar(&options.Tag, "tag", "", "Tag and version of the images, e.g. v0.1.0.")
	flags.StringVar(&options.Revision, "revision", "", "Commit that the files were made from. Empty: not said.")
	flags.StringSliceVar(&options.Architectures, "arch", architectures, "Architectures to build for.")
	if err := parse(flags, args, "recipe", "out", "tag"); err != nil {
		return err
	}
	var err error
	if options.Created, err = created(); err != nil {
		return err
	}
	r, err := recipe.Read(*file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "IMAGE\tPLATFORM\tSIZE\tDIGEST\tARCHIVE") // Flush returns what fails
	for _, image := range r.Images {
		index, err := oci.Build(image, r.Labels, options)
		if err != nil {
			return fmt.Errorf("%s: %w", *file, err)
		}
		archive := oci.Archive{Name: image.Name, Tag: options.Tag, Index: index}
		path := filepath.Join(*dir, image.ShortName()+".tar")
		if err := archive.Write(path); err != nil {
			return err
		}
		if err := printImage(table, archive, path); err != nil {
			return err
		}
	}
	return table.Flush()
}

// created is the time that images carry, by the convention of reproducible-builds.org: not
// the time of the build, unless somebody says so.
func created() (time.Time, error) {
	const variable = "SOURCE_DATE_EPOCH"
	value := os.Getenv(variable)
	if value == "" {
		value = "0"
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("%s is %q, must be seconds since 1970, e.g. 1767225600", variable, value)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func printImage(out io.Writer, archive oci.Archive, path string) error {
	digest, err := archive.Index.Digest()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%s:%s\tall\t\t%s\t%s\n", archive.Name, archive.Tag, digest, path)
	manifest, err := archive.Index.IndexManifest()
	if err != nil {
		return err
	}
	for _, descriptor := range manifest.Manifests {
		size, err := pullSize(archive.Index, descriptor.Digest)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "\t%s\t%.1f MB\t%s\t\n", descriptor.Platform, float64(size)/1e6, descriptor.Digest)
	}
	return nil
}

// pullSize is what a node downloads that has nothing of the image yet.
func pullSize(index v1.ImageIndex, digest v1.Hash) (int64, error) {
	image, err := index.Image(digest)
	if err != nil {
		return 0, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}
