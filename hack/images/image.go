package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// options are what the images of one build have in common.
type options struct {
	// Tag is the version, e.g. v0.1.0.
	Tag string
	// Revision is the commit that the files were made from. Empty: no label.
	Revision string
	// Architectures are Go's names, e.g. amd64; each is one image of the index, in this order.
	Architectures []string
	// Created is the time of everything in the image. The zero value is not 1970: set it.
	Created time.Time
}

var architectures = []string{"amd64", "arm64"}

// machines are what the header of a binary contains for each architecture.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// created is the time that images carry, by the convention of reproducible-builds.org: not the time of the build.
func created() (time.Time, error) {
	const variable = "SOURCE_DATE_EPOCH"
	value := os.Getenv(variable)
	if value == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("%s is %q, must be seconds since 1970, e.g. 1767225600", variable, value)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// build makes an image for every architecture, and the index that names them, with the labels of the recipe. They
// depend only on the arguments and the content of the files: not on clock, user, umask, time zone or the order of a directory.
func (i image) build(shared map[string]string, o options) (v1.ImageIndex, error) {
	if _, err := name.NewTag(host+i.Name+":"+o.Tag, name.StrictValidation); err != nil {
		return nil, fmt.Errorf("tag %q cannot be the tag of an image, e.g. v0.1.0: %w", o.Tag, err)
	}
	labels := map[string]string{}
	maps.Copy(labels, shared)
	for key, value := range map[string]string{"title": i.Title, "description": i.Description, "version": o.Tag, "revision": o.Revision} {
		if value != "" {
			labels["org.opencontainers.image."+key] = value
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range o.Architectures {
		if _, known := machines[arch]; !known {
			return nil, fmt.Errorf("architecture %q is not one of %q", arch, architectures)
		}
		built, err := i.buildFor(arch, labels, o.Created)
		if err != nil {
			return nil, fmt.Errorf("building %s for %s: %w", i.Name, arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	// Registries show the annotations of an index, not the labels of its images.
	return mutate.Annotations(index, labels).(v1.ImageIndex), nil
}

func (i image) buildFor(arch string, labels map[string]string, created time.Time) (v1.Image, error) {
	built := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.ConfigFile(built, &v1.ConfigFile{
		OS: "linux", Architecture: arch, Created: v1.Time{Time: created},
		Config: v1.Config{Entrypoint: i.Entrypoint, User: i.User, WorkingDir: "/", Labels: labels},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	base, err := i.baseTree()
	if err != nil {
		return nil, err
	}
	files, err := i.filesTree(arch, base)
	if err != nil {
		return nil, err
	}
	for _, layer := range []struct {
		tree tree
		name string
	}{{base, "base"}, {files, "files"}} {
		if len(layer.tree) == 0 {
			continue
		}
		packed, err := layer.tree.layer(created)
		if err != nil {
			return nil, err
		}
		built, err = mutate.Append(built, mutate.Addendum{Layer: packed, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: layer.name}})
		if err != nil {
			return nil, err
		}
	}
	return built, nil
}

func (i image) filesTree(arch string, base tree) (tree, error) {
	files := tree{}
	for n, file := range i.Files {
		mode, err := strconv.ParseInt(file.Mode, 8, 64)
		if err != nil {
			return nil, fmt.Errorf("files[%d].mode: %w", n, err)
		}
		content, err := os.ReadFile(file.source(arch))
		if err != nil {
			return nil, fmt.Errorf("files[%d].from: %w", n, err)
		}
		if file.perArch() {
			if err := checkMachine(content, arch); err != nil {
				return nil, fmt.Errorf("files[%d].from: %s %w", n, file.source(arch), err)
			}
		}
		files.file(file.To, mode, content)
	}
	for path, target := range i.Links {
		files.link(path, target)
	}
	return files, files.addParents(base)
}

// checkMachine rejects a binary for another architecture, which would first fail in a pod, with "exec format error".
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
