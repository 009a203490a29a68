// Command manifests writes YAML that is made from Go: what an administrator installs, into one
// directory (crds.yaml and policies), the files of the chart, and the policies of the
// examples, into theirs.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
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
		err = errors.Join(writeCRDs(filepath.Join(os.Args[1], "crds.yaml"), "*.yaml"), writePolicies(os.Args[1]))
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

// writePolicies writes the policies. Those that change objects have files of their own, one for each version of the API,
// so that every file applies as a whole where its API is served.
func writePolicies(dir string) error {
	served := map[string][]runtime.Object{}
	for _, obj := range admission.Installed() {
		if !mutatingpolicy.Is(obj) {
			served["policies.yaml"] = append(served["policies.yaml"], obj)
			continue
		}
		for file, version := range map[string]string{"mutating-policies.yaml": "v1", "mutating-policies-v1beta1.yaml": "v1beta1"} {
			converted, err := mutatingpolicy.In(version, obj)
			if err != nil {
				return err
			}
			served[file] = append(served[file], converted)
		}
	}
	var failed error
	for _, file := range slices.Sorted(maps.Keys(served)) {
		failed = errors.Join(failed, writeObjects(filepath.Join(dir, file), "", served[file]...))
	}
	return failed
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
