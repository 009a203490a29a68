package noderule

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/node"
)

var (
	then = metav1.NewTime(time.Unix(1e9, 0))
	now  = metav1.NewTime(time.Unix(1e9+60, 0))
)

func summaryOf(current corev1.ConditionStatus, tainted bool) noderule.Summary {
	required := v1alpha1.ConditionRequirement{Type: "example.com/A", RequiredStatus: corev1.ConditionTrue}
	node := noderule.NodeSummary{
		Name: "n1", State: noderule.Held, Tainted: tainted, Settled: true,
		Observations: []noderule.Observation{{Requirement: required, Current: current}},
	}
	return noderule.Summary{Selected: 1, Held: 1, Nodes: []noderule.NodeSummary{node}}
}

// Entries that did not change keep their times, so that an unchanged status is equal and is not written.
func TestUnchangedStatusIsEqual(t *testing.T) {
	rule, summary := &noderule.Rule{Generation: 1}, summaryOf(corev1.ConditionFalse, true)
	first := statusOf(standing{rule: rule, summary: summary}, &v1alpha1.NodeReadinessRuleStatus{}, then)
	second := statusOf(standing{rule: rule, summary: summary}, &first, now)
	if !equality.Semantic.DeepEqual(first, second) {
		t.Errorf("changed from %+v to %+v", first, second)
	}
	third := statusOf(standing{rule: rule, summary: summaryOf(corev1.ConditionUnknown, true)}, &second, now)
	if got := third.NodeEvaluations[0].LastEvaluationTime; !got.Equal(&now) {
		t.Errorf("a changed evaluation has the time %v", got)
	}
	if !third.TakenOverAt.Equal(&then) {
		t.Errorf("taken over at %v", third.TakenOverAt)
	}
}

func TestConditionsHaveTheReason(t *testing.T) {
	refused := map[string]node.Failure{"n1": {Reason: "Forbidden", Message: "policy says no", At: then.Time}}
	problem := &noderule.Problem{Reason: v1alpha1.ReasonConflict, Message: "rule \"older\" is older"}
	tests := map[string]struct {
		rule     noderule.Rule
		summary  noderule.Summary
		failures map[string]node.Failure
		refusal  error
		accepted bool
		enforced string
		words    string
	}{
		"all nodes up to date":         {accepted: true, enforced: v1alpha1.ReasonEnforced},
		"nodes to be updated":          {summary: noderule.Summary{Selected: 9, Unsettled: 2}, accepted: true, enforced: v1alpha1.ReasonProgressing, words: "updating 2 nodes"},
		"a rejected write of a node":   {summary: noderule.Summary{Selected: 9, Unsettled: 1}, failures: refused, accepted: true, enforced: v1alpha1.ReasonWriteRefused, words: "n1: policy says no"},
		"a dry run":                    {rule: noderule.Rule{DryRun: true}, accepted: true, enforced: v1alpha1.ReasonDryRun, words: "dryRunResults"},
		"a rule with a conflict":       {rule: noderule.Rule{Problem: problem}, enforced: v1alpha1.ReasonNotAccepted, words: "Accepted"},
		"a dry run of a holding rule":  {rule: noderule.Rule{DryRun: true}, summary: noderule.Summary{Holding: 2}, accepted: true, enforced: v1alpha1.ReasonDryRun, words: "stays on 2 nodes"},
		"a rejected write of the rule": {refusal: errors.New("no finalizer"), accepted: true, enforced: v1alpha1.ReasonWriteRefused, words: "no finalizer"},
		"a deleted rule, nodes clean":  {rule: noderule.Rule{Deleting: true}, accepted: true, enforced: v1alpha1.ReasonDeleting, words: "all nodes are clean"},
		"a rule in a cycle":            {rule: noderule.Rule{Unordered: "a → b → a"}, summary: noderule.Summary{Selected: 9}, accepted: true, enforced: v1alpha1.ReasonUnordered, words: "ignored: a → b → a"},
		"released by the deadline":     {rule: noderule.Rule{ReleaseStuck: true, Deadline: time.Hour}, summary: noderule.Summary{Selected: 9, Waiting: map[noderule.Cause]int{noderule.CauseDeadline: 3}}, accepted: true, enforced: v1alpha1.ReasonEnforced, words: "3 nodes released by the deadline"},
		"a rule that is being deleted": {rule: noderule.Rule{Deleting: true}, summary: noderule.Summary{Carrying: 1}, accepted: true, enforced: v1alpha1.ReasonDeleting, words: "from 1 node"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := statusOf(standing{rule: &tc.rule, summary: tc.summary, failures: tc.failures, refusal: tc.refusal}, &v1alpha1.NodeReadinessRuleStatus{}, now)
			if got := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted); got != tc.accepted {
				t.Errorf("accepted is %v", got)
			}
			got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEnforced)
			if got.Reason != tc.enforced || !strings.Contains(got.Message, tc.words) {
				t.Errorf("enforced: %s %s", got.Reason, got.Message)
			}
			if (got.Status == metav1.ConditionTrue) != (tc.enforced == v1alpha1.ReasonEnforced) {
				t.Errorf("enforced is %s with reason %s", got.Status, got.Reason)
			}
		})
	}
}

// The condition SoleController is there only while it is False.
func TestConditionSoleControllerIsRemovedWithItsCause(t *testing.T) {
	others := &metav1.Condition{Type: v1alpha1.ConditionSoleController, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOtherLease}
	status := statusOf(standing{rule: &noderule.Rule{}, others: others}, &v1alpha1.NodeReadinessRuleStatus{}, now)
	if !meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionSoleController) || !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionEnforced) {
		t.Errorf("got %+v", status.Conditions)
	}
	status = statusOf(standing{rule: &noderule.Rule{}}, &status, now)
	if got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSoleController); got != nil {
		t.Errorf("still there: %+v", got)
	}
}

// The API server does not validate conditions of nodes, but it validates the status of rules.
func TestInvalidConditionStatusIsUnknown(t *testing.T) {
	status := statusOf(standing{rule: &noderule.Rule{}, summary: summaryOf("Degraded", true)}, &v1alpha1.NodeReadinessRuleStatus{}, now)
	if got := status.NodeEvaluations[0].ConditionResults[0].CurrentStatus; got != corev1.ConditionUnknown {
		t.Errorf("got %q", got)
	}
}

func TestDryRunResultsReportWhatTheRuleWouldDo(t *testing.T) {
	rule := &noderule.Rule{DryRun: true}
	summary := noderule.Summary{Selected: 5, Held: 3, ToAdd: 3, ToRemove: 1, Unreported: 2}
	status := statusOf(standing{rule: rule, summary: summary}, &v1alpha1.NodeReadinessRuleStatus{}, now)
	want := v1alpha1.DryRunResults{AffectedNodes: 5, TaintsToAdd: 3, TaintsToRemove: 1, RiskyOperations: 2, Summary: "would add the taint to 3 nodes " +
		"and remove it from 1 node, of 5 nodes selected; 2 nodes without a condition of the rule: check that its reporter runs there"}
	if status.DryRunResults == nil || *status.DryRunResults != want {
		t.Errorf("got %+v", status.DryRunResults)
	}
	if status.Summary.Held != 0 {
		t.Errorf("a rule in dry run holds %d nodes", status.Summary.Held)
	}
}

// A node that stays released because of maxUnavailable is not in appliedNodes.
func TestLimitedNodeIsNotApplied(t *testing.T) {
	summary := summaryOf(corev1.ConditionFalse, false)
	summary.Nodes[0].Limited = true
	status := statusOf(standing{rule: &noderule.Rule{}, summary: summary}, &v1alpha1.NodeReadinessRuleStatus{}, now)
	if len(status.AppliedNodes) != 0 {
		t.Errorf("applied nodes: %v", status.AppliedNodes)
	}
}

// A stale condition that is reported again on a released node requeues nothing, so the rule is reconciled on a timer.
func TestRuleWithMaxAgeAndPendingHoldsIsReconciledAgain(t *testing.T) {
	aged := &noderule.Rule{Requirements: []v1alpha1.ConditionRequirement{{Type: "A", MaxAge: &metav1.Duration{Duration: time.Minute}}}}
	if again := (standing{rule: aged, summary: noderule.Summary{ToAdd: 1}}).again(now.Time); again != limitedRecheckInterval {
		t.Errorf("again in %v, want %v", again, limitedRecheckInterval)
	}
	if again := (standing{rule: aged}).again(now.Time); again != 0 {
		t.Errorf("again in %v, want never", again)
	}
}
