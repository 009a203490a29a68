// Package lint checks manifests before anybody applies them. It needs no cluster: what the API
// server would refuse is found with the CustomResourceDefinition itself, conflicts with the
// engine that enforces rules, and the rest is what is known to hurt.
//
// It never reads files: whoever calls it brings their content.
package lint
