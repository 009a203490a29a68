package lint

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// namespaces are the labels of namespaces, as far as the files tell.
type namespaces map[string]labels.Set

func namespacesIn(documents []document) namespaces {
	spaces := namespaces{}
	for _, d := range documents {
		if d.GetKind() == "Namespace" {
			spaces[d.GetName()] = labels.Merge(d.GetLabels(), nameLabel(d.GetName()))
		}
	}
	return spaces
}

// nameLabel is the label that every namespace has.
func nameLabel(name string) labels.Set { return labels.Set{corev1.LabelMetadataName: name} }

// addsToleration says whether the API server lets the workload tolerate the rule's taint.
func (n namespaces) addsToleration(rule *v1alpha1.NodeReadinessRule, d document) bool {
	wanted := rule.Spec.Tolerations
	if wanted == nil || rule.Spec.DryRun || d.GetKind() != "DaemonSet" {
		return false
	}
	space := d.GetNamespace()
	if space == "" {
		space = metav1.NamespaceDefault
	}
	known, ok := n[space]
	if !ok {
		known = nameLabel(space)
	}
	return selects(wanted.DaemonSetSelector, d.GetLabels()) && selects(wanted.NamespaceSelector, known)
}

// selects says whether the labels match; without a selector all do.
func selects(s *v1alpha1.LabelSelector, set labels.Set) bool {
	if s == nil {
		return true
	}
	plain := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range s.MatchLabels {
		plain.MatchLabels[key] = string(value)
	}
	for _, e := range s.MatchExpressions {
		expression := metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator}
		for _, value := range e.Values {
			expression.Values = append(expression.Values, string(value))
		}
		plain.MatchExpressions = append(plain.MatchExpressions, expression)
	}
	selector, err := metav1.LabelSelectorAsSelector(plain)
	return err == nil && selector.Matches(set)
}
