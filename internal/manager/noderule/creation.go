package noderule

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// creation is the state of the policy readygate-taint-new-nodes for one rule.
type creation struct {
	// condition is TaintedAtCreation; nil until the policy was read.
	condition *metav1.Condition
	// gone is true if no API server adds the rule's taint to nodes anymore. Otherwise hint describes what a deleted
	// rule waits for, unless it waits for the settle time only.
	gone bool
	hint string
	// again is the time until the state may change without an event; zero: never.
	again time.Duration
}

func (r *Reconciler) creationOf(rule *noderule.Rule, status *v1alpha1.NodeReadinessRuleStatus) creation {
	var c creation
	was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionTaintedAtCreation)
	wasCovered := was != nil && was.Status == metav1.ConditionTrue && was.ObservedGeneration == rule.Generation
	gap, wait, known := r.Coverage.Covers(rule.UID, wasCovered)
	if known {
		covered := taintedAtCreation(rule, gap)
		c.condition = &covered
	}
	if rule.Active() {
		c.again = wait
	}
	if rule.Deleting {
		c.gone, c.again = r.Coverage.Gone(rule.UID)
		if gap != nil && !c.gone && c.again == 0 {
			c.hint = ": " + gap.Message
		}
	}
	return c
}

// taintedAtCreation returns the condition. The gap is why the policy does not cover the rule; nil if it does.
func taintedAtCreation(rule *noderule.Rule, gap *admissioncontroller.Gap) metav1.Condition {
	not := func(reason, message string) metav1.Condition {
		return rulecache.Condition(v1alpha1.ConditionTaintedAtCreation, false, reason, message)
	}
	switch {
	case gap != nil && gap.Reason == v1alpha1.ReasonPolicyOutdated: // also for a deleted rule, which waits for the administrator
		return not(gap.Reason, gap.Message)
	case rule.Deleting:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted")
	case rule.Problem != nil:
		return not(v1alpha1.ReasonNotAccepted, "the rule is not enforced: see the condition Accepted")
	case rule.DryRun:
		return not(v1alpha1.ReasonDryRun, "dry run: set spec.dryRun to false to enforce the rule")
	case gap != nil && gap.Reason != v1alpha1.ReasonProgressing:
		return not(gap.Reason, gap.Message)
	}
	if later := admission.LabelsSetLater(rule); len(later) > 0 { // waiting does not help
		taint := rule.Taint
		return not(v1alpha1.ReasonLabelNotSetByKubelet, fmt.Sprintf("kubelets may not set %s, so a node gets the taint only when another client sets the label; "+
			"register the nodes with --register-with-taints=%s, or select them by a label that a kubelet may set (--node-labels), e.g. example.com/pool",
			strings.Join(later, ", "), taint.ToString()))
	}
	if gap != nil {
		return not(gap.Reason, gap.Message)
	}
	return rulecache.Condition(v1alpha1.ConditionTaintedAtCreation, true, v1alpha1.ReasonPolicyActive, "selected nodes are created with the taint")
}
