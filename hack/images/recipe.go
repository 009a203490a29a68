package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

// recipe is a YAML file that describes images, which are built together.
type recipe struct {
	// labels are put on every image, e.g. org.opencontainers.image.licenses: Apache-2.0. Absent: none.
	Labels map[string]string `json:"labels,omitempty"`
	// images are what to build; at least one.
	Images []image `json:"images"`
}

// image is one image, for every architecture.
type image struct {
	// name is without host and tag, e.g. readygate/readygate-manager. Its last part names the archive.
	Name string `json:"name"`
	// title and description become the labels of the same name. Absent: no such label.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// base puts users, certificates and /tmp below the files. Absent: the image has only the files.
	Base bool `json:"base,omitempty"`
	// files are copied into the image, all of them in its last layer.
	Files []file `json:"files,omitempty"`
	// links are symbolic links: path and target. Absent: none.
	Links map[string]string `json:"links,omitempty"`
	// entrypoint is the command with its arguments, e.g. [/readygate-manager].
	Entrypoint []string `json:"entrypoint"`
	// user runs the entrypoint, in numbers, e.g. 65532:65532. Absent: 65532:65532.
	User string `json:"user,omitempty"`
}

// file is a file that is copied into an image. Its owner is root.
type file struct {
	// from is a file relative to the working directory, e.g. bin/{{.Arch}}/readygate-manager.
	From string `json:"from"`
	// to is the absolute path in the image, e.g. /readygate-manager.
	To string `json:"to"`
	// mode is the octal mode in quotes, e.g. "0755".
	Mode string `json:"mode"`
}

const (
	archVariable = "{{.Arch}}"
	defaultUser  = "65532:65532"
)

// numericUser: a kubelet that must run an image as non-root rejects a name, which it cannot look up.
var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

func (i image) shortName() string { return path.Base(i.Name) }

// perArch reports whether there is one such file for each architecture.
func (f file) perArch() bool { return strings.Contains(f.From, archVariable) }

func (f file) source(arch string) string { return strings.ReplaceAll(f.From, archVariable, arch) }

// sources are the files that differ between architectures, for one of them.
func (r *recipe) sources(arch string) []string {
	var sources []string
	for _, image := range r.Images {
		for _, file := range image.Files {
			if file.perArch() {
				sources = append(sources, file.source(arch))
			}
		}
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// readRecipe reads a recipe. An error names the file and the field.
func readRecipe(file string) (*recipe, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the recipe: %w", err)
	}
	r := &recipe{}
	if err := r.parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// parse does not use yaml.UnmarshalStrict, which turns a mode without quotes into the decimal number.
func (r *recipe) parse(data []byte) error {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil {
		return err
	}
	return r.complete()
}

// complete sets defaults and validates the recipe.
func (r *recipe) complete() error {
	if len(r.Images) == 0 {
		return errors.New("images: is empty: name at least one image")
	}
	archives := map[string]string{}
	for i := range r.Images {
		image := &r.Images[i]
		if image.User == "" {
			image.User = defaultUser
		}
		if err := image.validate(); err != nil {
			return fmt.Errorf("images[%d].%w", i, err)
		}
		if other, taken := archives[image.shortName()]; taken {
			return fmt.Errorf("images[%d].name: %q ends like %q, and both would be %s.tar: the last parts of names must differ", i, image.Name, other, image.shortName())
		}
		archives[image.shortName()] = image.Name
	}
	return nil
}

func (i image) validate() error {
	// After this host, the name cannot contain a host.
	if _, err := name.NewRepository("registry.invalid/"+i.Name, name.StrictValidation); err != nil || strings.ContainsAny(i.Name, ".:") {
		return fmt.Errorf("name: %q is not a name without host and tag, e.g. readygate/readygate-manager", i.Name)
	}
	if !numericUser.MatchString(i.User) {
		return fmt.Errorf("user: %q is not made of numbers, e.g. %q", i.User, defaultUser)
	}
	paths := map[string]bool{}
	for n, file := range i.Files {
		if err := addPath(paths, file.To); err != nil {
			return fmt.Errorf("files[%d].to: %w", n, err)
		}
		if _, err := strconv.ParseUint(file.Mode, 8, 12); err != nil {
			return fmt.Errorf(`files[%d].mode: %q is not an octal mode, e.g. "0755"`, n, file.Mode)
		}
	}
	for _, link := range slices.Sorted(maps.Keys(i.Links)) {
		if err := addPath(paths, link); err != nil {
			return fmt.Errorf("links: %w", err)
		}
	}
	if len(i.Entrypoint) == 0 {
		return errors.New("entrypoint: is empty: name the command, e.g. [/readygate-manager]")
	}
	if !paths[i.Entrypoint[0]] {
		return fmt.Errorf("entrypoint: %q is not in the image: make it the \"to\" of a file, or a link", i.Entrypoint[0])
	}
	return nil
}

func addPath(paths map[string]bool, p string) error {
	clean := path.Clean("/" + p)
	switch {
	case clean == "/":
		return fmt.Errorf("%q is not the path of a file, e.g. /readygate-manager", p)
	case p != clean:
		return fmt.Errorf("%q is not a clean absolute path: write %q", p, clean)
	case paths[p]:
		return fmt.Errorf("%q is there twice", p)
	}
	paths[p] = true
	return nil
}
