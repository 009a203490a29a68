// Package crds holds the CustomResourceDefinitions of every API of this project.
package crds

import "embed"

// Files are the definitions, one YAML document a file. They are generated from the types.
//
//go:embed *.yaml
var Files embed.FS
