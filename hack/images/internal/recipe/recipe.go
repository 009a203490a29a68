// Package recipe is what images are made of, as a YAML file says it. It reads that file and no
// other, and makes nothing.
package recipe

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Recipe is the content of a file: images that are built together.
type Recipe struct {
	// labels are put on every image, e.g. org.opencontainers.image.licenses: Apache-2.0. Absent: none.
	Labels map[string]string `json:"labels,omitempty"`
	// images are what to build; at least one.
	Images []Image `json:"images"`
}

// Image is one image, for every architecture.
type Image struct {
	// name is without host and tag, e.g. readygate/readygate-manager. Its last part names the archive.
	Name string `json:"name"`
	// title and description become the labels of the same name. Absent: no such label.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// base puts users, certificates, /tmp and the like below the files. Absent: nothing is there but the files.
	Base bool `json:"base,omitempty"`
	// files are copied into the image, all of them in its last layer.
	Files []File `json:"files,omitempty"`
	// links are symbolic links: where they are, and what they lead to. Absent: none.
	Links map[string]string `json:"links,omitempty"`
	// entrypoint is the command with its arguments, e.g. [/readygate-manager].
	Entrypoint []string `json:"entrypoint"`
	// env are environment variables. Absent: none.
	Env map[string]string `json:"env,omitempty"`
	// user is who runs the entrypoint, in numbers, e.g. 65532:65532. Absent: 65532:65532.
	User string `json:"user,omitempty"`
}

// File is a file that is copied into an image. Owner is always root.
type File struct {
	// from is a file, seen from the working directory, e.g. bin/{{.Arch}}/readygate-manager.
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

// ShortName is the last part of the name.
func (i Image) ShortName() string { return path.Base(i.Name) }

// PerArch says whether there is one such file for each architecture.
func (f File) PerArch() bool { return strings.Contains(f.From, archVariable) }

// Source is the file to copy for an architecture.
func (f File) Source(arch string) string { return strings.ReplaceAll(f.From, archVariable, arch) }

// Bits is the mode as a number.
func (f File) Bits() (int64, error) {
	bits, err := strconv.ParseUint(f.Mode, 8, 12)
	if err != nil {
		return 0, fmt.Errorf(`%q is not an octal mode, e.g. "0755"`, f.Mode)
	}
	return int64(bits), nil
}

// Sources are the files that differ between architectures, for one of them.
func (r *Recipe) Sources(arch string) []string {
	var sources []string
	for _, image := range r.Images {
		for _, file := range image.Files {
			if file.PerArch() {
				sources = append(sources, file.Source(arch))
			}
		}
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// Read reads a recipe. An error names the file and the field.
func Read(file string) (*Recipe, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the recipe: %w", err)
	}
	recipe, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return recipe, nil
}

func parse(data []byte) (*Recipe, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	recipe := &Recipe{}
	strict, err := json.UnmarshalStrict(asJSON, recipe)
	if err != nil {
		return nil, err
	}
	if len(strict) > 0 {
		return nil, strict[0]
	}
	if err := recipe.validate(); err != nil {
		return nil, err
	}
	for i := range recipe.Images {
		if recipe.Images[i].User == "" {
			recipe.Images[i].User = defaultUser
		}
	}
	return recipe, nil
}
