package uninstall

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// ruleKind is one of the two kinds of rules, and what is ours on them.
type ruleKind struct {
	// what they are, for people.
	what string
	// finalizer is ours.
	finalizer string
	newList   func() client.ObjectList
	// clear removes from the status what is true only while a controller enforces the rule. What
	// other clients wrote stays.
	clear func(client.Object)
	// kept is what stays along with rules that stay, and why.
	kept string
}

// nodeRules are the rules for nodes. takenOverAt stays in the status: completion records depend on it.
func nodeRules() ruleKind {
	return ruleKind{
		what: "rules", finalizer: nodev1alpha1.Finalizer,
		newList: func() client.ObjectList { return &nodev1alpha1.NodeReadinessRuleList{} },
		clear: func(obj client.Object) {
			status := &obj.(*nodev1alpha1.NodeReadinessRule).Status
			*status = nodev1alpha1.NodeReadinessRuleStatus{
				TakenOverAt: status.TakenOverAt,
				Conditions: without(status.Conditions, nodev1alpha1.ConditionAccepted, nodev1alpha1.ConditionEnforced,
					nodev1alpha1.ConditionTaintedAtCreation, nodev1alpha1.ConditionReportersTolerated, nodev1alpha1.ConditionSoleController),
			}
		},
		kept: "their CRD, with completion records on nodes: another controller, or Readygate again, goes on with them (--rules=keep)",
	}
}

// podRules are the rules for pods.
func podRules() ruleKind {
	return ruleKind{
		what: "rules for pods", finalizer: podv1alpha1.Finalizer,
		newList: func() client.ObjectList { return &podv1alpha1.PodReadinessRuleList{} },
		clear: func(obj client.Object) {
			status := &obj.(*podv1alpha1.PodReadinessRule).Status
			*status = podv1alpha1.PodReadinessRuleStatus{Conditions: without(status.Conditions, podv1alpha1.ConditionAccepted, podv1alpha1.ConditionEnforced, nodev1alpha1.ConditionSoleController)}
		},
		kept: "their CRD: Readygate goes on with them when it is installed again (--rules=keep)",
	}
}

// without are the conditions but for those of these types.
func without(conditions []metav1.Condition, types ...string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
}
