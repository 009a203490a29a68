// Package crds holds the CustomResourceDefinitions of every API of this project.
package crds

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Files are the definitions, one YAML document per file. They are generated from the Go types.
//
//go:embed *.yaml
var Files embed.FS

// Definitions returns the definitions as objects. Each call returns new objects.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		data, err := Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, definition); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}
