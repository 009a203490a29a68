// Package lint checks manifests before they are applied. It needs no cluster: it validates with the
// CustomResourceDefinition itself, finds conflicts with the code that enforces rules, and adds checks for known
// mistakes.
//
// It never reads files: the caller passes their content.
package lint
