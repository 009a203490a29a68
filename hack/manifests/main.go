// Command manifests writes YAML that is made from Go: what an administrator installs, into one
// directory (crds.yaml and policies.yaml), the files of the chart, and the policies of the
// examples, into theirs.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/internal/core/admission"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "--examples":
		err = writeExamples(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "--chart":
		err = writeChart(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "--plain" && os.Args[2] == "--namespace":
		err = writePlain(os.Stdin, os.Args[3], true)
	case len(os.Args) == 3 && os.Args[1] == "--plain":
		err = writePlain(os.Stdin, os.Args[2], false)
	case len(os.Args) == 2:
		dir := os.Args[1]
		err = errors.Join(write(dir, "crds.yaml", definitions), write(dir, "policies.yaml", func() ([][]byte, error) { return admission.YAML(admission.Installed()...) }))
	default:
		fmt.Fprintln(os.Stderr, "usage: manifests dist; or manifests --examples examples; or manifests --chart charts/readygate; "+
			"or manifests --plain [--namespace] FILE <RENDERED")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func write(dir, name string, content func() ([][]byte, error)) error {
	documents, err := content()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	fmt.Println("manifests:", path)
	return os.WriteFile(path, bytes.Join(documents, []byte("---\n")), 0o644)
}

func definitions() ([][]byte, error) {
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for _, name := range names {
		document, err := definition(name)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

func definition(name string) ([]byte, error) {
	data, err := crds.Files.ReadFile(name)
	return bytes.TrimPrefix(data, []byte("---\n")), err
}
