package uninstall

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// ruleKind is one of the two kinds of rules, and what is ours on them.
type ruleKind struct {
	// what they are, for people.
	what string
	// finalizer is ours.
	finalizer string
	// list are all of them; none where the CRD is gone.
	list func(context.Context) ([]client.Object, error)
	// clear removes from the status what is true only while somebody enforces the rule. What
	// others wrote stays.
	clear func(client.Object)
	// kept is what stays along with rules that stay, and why.
	kept string
}

// nodeRules are the rules for nodes. When Readygate first saw one stays in its status: that is a
// memory of completions.
func (r *run) nodeRules() ruleKind {
	return ruleKind{
		what: "rules", finalizer: nodev1alpha1.Finalizer,
		list: func(ctx context.Context) ([]client.Object, error) {
			rules, err := rulecache.NodeRules(ctx, r.client)
			return objects(rules), err
		},
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
func (r *run) podRules() ruleKind {
	return ruleKind{
		what: "rules for pods", finalizer: podv1alpha1.Finalizer,
		list: func(ctx context.Context) ([]client.Object, error) {
			var list podv1alpha1.PodReadinessRuleList
			err := rulecache.ListLive(ctx, r.client, &list)
			return objects(rulecache.Pointers(list.Items)), err
		},
		clear: func(obj client.Object) {
			status := &obj.(*podv1alpha1.PodReadinessRule).Status
			*status = podv1alpha1.PodReadinessRuleStatus{Conditions: without(status.Conditions, podv1alpha1.ConditionAccepted, podv1alpha1.ConditionEnforced, nodev1alpha1.ConditionSoleController)}
		},
		kept: "their CRD: Readygate goes on with them when it is installed again (--rules=keep)",
	}
}

func objects[T client.Object](items []T) []client.Object {
	all := make([]client.Object, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

// without are the conditions but for those of these types.
func without(conditions []metav1.Condition, types ...string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return slices.Contains(types, c.Type) })
}
