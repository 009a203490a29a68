package recipe

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

var numericUser = regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`)

func (r *Recipe) validate() error {
	if len(r.Images) == 0 {
		return errors.New("images: is empty: name at least one image")
	}
	archives := map[string]string{}
	for i, image := range r.Images {
		if err := image.validate(); err != nil {
			return fmt.Errorf("images[%d].%w", i, err)
		}
		if other, taken := archives[image.ShortName()]; taken {
			return fmt.Errorf("images[%d].name: %q ends like %q, and both would be %s.tar: the last parts of names must differ", i, image.Name, other, image.ShortName())
		}
		archives[image.ShortName()] = image.Name
	}
	return nil
}

func (i Image) validate() error {
	// Behind a host that is a host for sure, a name cannot hide one of its own.
	if _, err := name.NewRepository("registry.invalid/"+i.Name, name.StrictValidation); err != nil || strings.ContainsAny(i.Name, ".:") {
		return fmt.Errorf("name: %q is not a name without host and tag, e.g. readygate/readygate-manager", i.Name)
	}
	if i.User != "" && !numericUser.MatchString(i.User) {
		// A kubelet that is to run an image as non-root refuses a name: it cannot look it up.
		return fmt.Errorf("user: %q is not made of numbers, e.g. %q", i.User, defaultUser)
	}
	for _, key := range slices.Sorted(maps.Keys(i.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return fmt.Errorf("env: %q is not the name of a variable", key)
		}
	}
	return i.validateContent()
}

func (i Image) validateContent() error {
	there := map[string]bool{}
	for n, file := range i.Files {
		if err := file.validate(); err != nil {
			return fmt.Errorf("files[%d].%w", n, err)
		}
		if there[file.To] {
			return fmt.Errorf("files[%d].to: %q is there twice", n, file.To)
		}
		there[file.To] = true
	}
	for _, link := range slices.Sorted(maps.Keys(i.Links)) {
		if err := validatePath(link); err != nil {
			return fmt.Errorf("links: %w", err)
		}
		if there[link] {
			return fmt.Errorf("links: %q is a file already", link)
		}
		if i.Links[link] == "" {
			return fmt.Errorf("links[%s]: is empty: say what the link leads to, e.g. /bin/tool", link)
		}
		there[link] = true
	}
	if len(i.Entrypoint) == 0 {
		return errors.New("entrypoint: is empty: name the command, e.g. [/readygate-manager]")
	}
	if !there[i.Entrypoint[0]] {
		return fmt.Errorf("entrypoint: %q is not in the image: make it the \"to\" of a file, or a link", i.Entrypoint[0])
	}
	return nil
}

func (f File) validate() error {
	if f.From == "" {
		return errors.New("from: is empty: name the file to copy, e.g. bin/{{.Arch}}/readygate-manager")
	}
	if strings.Contains(f.Source(""), "{{") {
		return fmt.Errorf("from: %q has a variable other than %s", f.From, archVariable)
	}
	if err := validatePath(f.To); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	if _, err := f.Bits(); err != nil {
		return fmt.Errorf("mode: %w", err)
	}
	return nil
}

func validatePath(p string) error {
	if p == "" || p == "/" {
		return fmt.Errorf("%q is not the path of a file, e.g. /readygate-manager", p)
	}
	if clean := path.Clean("/" + p); p != clean {
		return fmt.Errorf("%q is not a clean absolute path: write %q", p, clean)
	}
	return nil
}
