// Package v1alpha1 is the API of the node half: NodeReadinessRule.
//
// The group, its names and their meaning are shared with other controllers that enforce
// the same rules, so a cluster can change between them without editing a manifest. What
// Readygate adds is optional.
//
// +kubebuilder:object:generate=true
// +groupName=readiness.node.x-k8s.io
package v1alpha1
