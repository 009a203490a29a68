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

	"k8s.io/apimachinery/pkg/runtime"

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
		err = errors.Join(writeCRDs(filepath.Join(os.Args[1], "crds.yaml"), "*.yaml"), writeObjects(filepath.Join(os.Args[1], "policies.yaml"), "", admission.Installed()...))
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

func write(path string, documents ...[]byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fmt.Println("manifests:", path)
	return os.WriteFile(path, bytes.Join(documents, []byte("---\n")), 0o644)
}

// writeObjects writes a comment, which may be empty, and the objects.
func writeObjects(path, comment string, objects ...runtime.Object) error {
	documents, err := admission.YAML(objects...)
	if err != nil {
		return err
	}
	documents[0] = append([]byte(comment), documents[0]...)
	return write(path, documents...)
}

// writeCRDs writes the CRDs whose files match.
func writeCRDs(path, pattern string) error {
	names, err := fs.Glob(crds.Files, pattern)
	if err != nil {
		return err
	}
	var documents [][]byte
	for _, name := range names {
		data, err := crds.Files.ReadFile(name)
		if err != nil {
			return err
		}
		documents = append(documents, bytes.TrimPrefix(data, []byte("---\n")))
	}
	return write(path, documents...)
}
