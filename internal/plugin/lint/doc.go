// Package lint checks manifests before they are applied, without a cluster. It validates with the
// CustomResourceDefinitions, finds conflicts with the code of the manager, and adds checks for known mistakes.
//
// It must never read files: callers pass their content.
package lint
