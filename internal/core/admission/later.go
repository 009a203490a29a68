package admission

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"
	kubelet "k8s.io/kubelet/pkg/apis"

	"github.com/readygate/readygate/internal/core/noderule"
)

// LabelsSetLater are the labels that a node must have for the rule to select it, and that no
// kubelet may set on its own node: a node cannot be created with them, somebody sets them later.
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

// kubeletMaySet says what the admission plugin NodeRestriction says of a label.
func kubeletMaySet(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return true
	}
	under := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return !under("kubernetes.io") && !under("k8s.io") || kubelet.IsKubeletLabel(key)
}
