package oci

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/readygate/readygate/hack/images/internal/recipe"
)

// Options are what the images of one build have in common.
type Options struct {
	// Tag is the version, e.g. v0.1.0.
	Tag string
	// Revision is the commit that the files were made from. Empty: not said.
	Revision string
	// Architectures are Go's names, e.g. amd64; each is one image of the index, in this order.
	Architectures []string
	// Created is the time of everything in the image. The zero value is not 1970: set it.
	Created time.Time
}

// machines are the architectures that images can be built for, and what binaries say that are
// made for them.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Build makes an image for every architecture, and the index that names them. Shared are the
// labels that all images of the recipe have.
func Build(image recipe.Image, shared map[string]string, options Options) (v1.ImageIndex, error) {
	if _, err := name.NewTag(host+image.Name+":"+options.Tag, name.StrictValidation); err != nil {
		return nil, fmt.Errorf("tag %q cannot be the tag of an image, e.g. v0.1.0: %w", options.Tag, err)
	}
	labels := labelsOf(image, shared, options)
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range options.Architectures {
		if _, known := machines[arch]; !known {
			return nil, fmt.Errorf("architecture %q is not one of %q", arch, slices.Sorted(maps.Keys(machines)))
		}
		built, err := buildFor(arch, image, labels, options.Created)
		if err != nil {
			return nil, fmt.Errorf("building %s for %s: %w", image.Name, arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	// Registries show the annotations of an index, and know nothing of the labels below it.
	return mutate.Annotations(index, labels).(v1.ImageIndex), nil
}

func buildFor(arch string, image recipe.Image, labels map[string]string, created time.Time) (v1.Image, error) {
	var base tree
	var layers []mutate.Addendum
	add := func(content tree, what string) error {
		layer, err := content.layer(created)
		layers = append(layers, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: what}})
		return err
	}
	if image.Base {
		var err error
		if base, err = baseTree(); err != nil {
			return nil, err
		}
		if err := add(base, "base"); err != nil {
			return nil, err
		}
	}
	files, err := filesTree(arch, image, base)
	if err != nil {
		return nil, err
	}
	if err := add(files, "files"); err != nil {
		return nil, err
	}

	built := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err = mutate.ConfigFile(built, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: created},
		Config: v1.Config{Entrypoint: image.Entrypoint, Env: environment(image.Env), User: image.User, WorkingDir: "/", Labels: labels},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(built, layers...)
}

func filesTree(arch string, image recipe.Image, below tree) (tree, error) {
	files := tree{}
	for i, file := range image.Files {
		mode, err := file.Bits()
		if err != nil {
			return nil, fmt.Errorf("files[%d].mode: %w", i, err)
		}
		content, err := os.ReadFile(file.Source(arch))
		if err != nil {
			return nil, fmt.Errorf("files[%d].from: %w", i, err)
		}
		if file.PerArch() {
			if err := checkMachine(content, arch); err != nil {
				return nil, fmt.Errorf("files[%d].from: %s %w", i, file.Source(arch), err)
			}
		}
		files.file(file.To, mode, content)
	}
	for path, target := range image.Links {
		files.link(path, target)
	}
	return files, files.addParents(below)
}

// checkMachine refuses a binary of another architecture. Nobody would see it before a pod
// fails with "exec format error".
func checkMachine(content []byte, arch string) error {
	binary, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil //nolint:nilerr // not a binary: a script or data runs anywhere
	}
	if binary.Machine != machines[arch] {
		return fmt.Errorf("is a binary for %v, must be one for %v: build it with GOARCH=%s", binary.Machine, machines[arch], arch)
	}
	return nil
}

func labelsOf(image recipe.Image, shared map[string]string, options Options) map[string]string {
	labels := maps.Clone(shared)
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range map[string]string{
		"title": image.Title, "description": image.Description, "version": options.Tag, "revision": options.Revision,
	} {
		if value != "" {
			labels["org.opencontainers.image."+key] = value
		}
	}
	return labels
}

func environment(variables map[string]string) []string {
	var env []string
	for _, key := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, key+"="+variables[key])
	}
	return env
}
