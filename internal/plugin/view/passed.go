package view

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Passed is a rule that does not select the pod, with the reason.
type Passed struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// excluded returns why no rule may select the pod; empty if rules may.
func excluded(obj *corev1.Pod) string {
	_, mirror := obj.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case podrule.Eligible(obj):
		return ""
	case obj.Spec.HostNetwork:
		return "it uses the network of its node (hostNetwork)"
	case mirror:
		return "it is the mirror pod of a static pod"
	}
	return fmt.Sprintf("it opts out (label %s: %q)", v1alpha1.OptOutLabel, v1alpha1.OptOut)
}

// passed returns why each rule does not select the pod.
func (b *PodBook) passed(obj *corev1.Pod, place Place) []Passed {
	var all []Passed
	for _, rule := range b.rules {
		all = append(all, Passed{Rule: rule.Name, Why: passes(rule, obj, place.Namespace)})
	}
	return all
}

func passes(rule *podrule.Rule, obj *corev1.Pod, namespace map[string]string) string {
	switch {
	case rule.Invalid != nil:
		return "the rule is invalid and has no effect: " + rule.Invalid.Error()
	case rule.Deleting:
		return "the rule is being deleted"
	case slices.Contains(rule.Excludes(), obj.Namespace):
		return fmt.Sprintf("namespace %s is selected only by a rule that names it with the label %s in its namespaceSelector", obj.Namespace, corev1.LabelMetadataName)
	}
	named := labels.Merge(namespace, labels.Set{corev1.LabelMetadataName: obj.Namespace})
	if asked, found := mismatch(rule.Namespaces(), named); asked != "" {
		if namespace == nil {
			found = "labels that could not be read"
		}
		return fmt.Sprintf("its namespaceSelector requires %s, but namespace %s has %s", asked, obj.Namespace, found)
	}
	if asked, found := mismatch(rule.Pods(), obj.Labels); asked != "" {
		return fmt.Sprintf("its podSelector requires %s, but the pod has %s", asked, found)
	}
	return "its selectors do not match"
}

// mismatch returns the first requirement that the labels do not meet, and the actual label; empty if the labels meet
// all.
func mismatch(all labels.Requirements, set labels.Set) (asked, found string) {
	for i := range all {
		key := all[i].Key()
		if all[i].Matches(set) {
			continue
		}
		if value, has := set[key]; has {
			return all[i].String(), key + "=" + value
		}
		return all[i].String(), "no label " + key
	}
	return "", ""
}
