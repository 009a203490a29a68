package admission

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"
	kubelet "k8s.io/kubelet/pkg/apis"

	"github.com/readygate/readygate/internal/core/noderule"
)

// LabelsSetLater returns the labels that a node must have for the rule to select it, and that a kubelet may not set on its
// own node: a kubelet cannot register a node with them, so another component sets them later.
func LabelsSetLater(rule *noderule.Rule) []string {
	var later []string
	for i := range rule.Selector() {
		r := &rule.Selector()[i]
		switch r.Operator() {
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
			continue // a node without the label matches
		}
		if !kubeletMaySet(r.Key()) {
			later = append(later, r.Key())
		}
	}
	return slices.Compact(later) // the selector is sorted by key
}

// kubeletMaySet reports whether the admission plugin NodeRestriction allows a kubelet to set the label.
func kubeletMaySet(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return true
	}
	under := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return !under("kubernetes.io") && !under("k8s.io") || kubelet.IsKubeletLabel(key)
}
