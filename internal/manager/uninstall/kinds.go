package uninstall

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// ruleKind is one of the two kinds of rules, with the finalizer and the status that Readygate owns.
type ruleKind struct {
	// what is the name of the kind in the summary and in the log.
	what string
	// finalizer is the finalizer of Readygate.
	finalizer string
	newList   func() client.ObjectList
	// clear removes the parts of the status that are valid only while a controller enforces the rule. Parts of other
	// clients stay.
	clear func(client.Object)
	// kept is what stays together with the rules, and why.
	kept string
}

// nodeRules is NodeReadinessRule. takenOverAt stays in the status: completion records depend on it.
func nodeRules() ruleKind {
	return ruleKind{
		what: "NodeReadinessRules", finalizer: nodev1alpha1.Finalizer,
		newList: func() client.ObjectList { return &nodev1alpha1.NodeReadinessRuleList{} },
		clear: func(obj client.Object) {
			status := &obj.(*nodev1alpha1.NodeReadinessRule).Status
			*status = nodev1alpha1.NodeReadinessRuleStatus{
				TakenOverAt: status.TakenOverAt,
				Conditions: without(status.Conditions, nodev1alpha1.ConditionAccepted, nodev1alpha1.ConditionEnforced,
					nodev1alpha1.ConditionTaintedAtCreation, nodev1alpha1.ConditionReportersTolerated, nodev1alpha1.ConditionSoleController),
			}
		},
		kept: "their CRD, and completion records on nodes: another controller, or a new installation of Readygate, can use them (--rules=keep)",
	}
}

// podRules is PodReadinessRule.
func podRules() ruleKind {
	return ruleKind{
		what: "PodReadinessRules", finalizer: podv1alpha1.Finalizer,
		newList: func() client.ObjectList { return &podv1alpha1.PodReadinessRuleList{} },
		clear: func(obj client.Object) {
			status := &obj.(*podv1alpha1.PodReadinessRule).Status
			*status = podv1alpha1.PodReadinessRuleStatus{Conditions: without(status.Conditions, podv1alpha1.ConditionAccepted, podv1alpha1.ConditionEnforced, nodev1alpha1.ConditionSoleController)}
		},
		kept: "their CRD: a new installation of Readygate can use them (--rules=keep)",
	}
}

// without returns the conditions except those of these types.
func without(conditions []metav1.Condition, types ...string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
}
