// Package v1alpha1 is the API of the pod half: PodReadinessRule.
//
// +kubebuilder:object:generate=true
// +groupName=readygate.dev
package v1alpha1
