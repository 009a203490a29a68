// Package v1alpha1 is the API of the node half: NodeReadinessRule.
//
// The API group, its names and their meaning are shared with other controllers that enforce the same rules. A cluster
// can switch between them without a change of a manifest. Fields that Readygate adds are optional.
//
// +kubebuilder:object:generate=true
// +groupName=readiness.node.x-k8s.io
package v1alpha1
