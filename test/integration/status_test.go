package integration_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// The size of the status is bounded: lists are truncated and name held nodes first. The counts include all nodes.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	const total, late = 130, 3
	for i := range total {
		node := testenv.Node(fmt.Sprintf("%s-%03d", id, i), testenv.Pool(id))
		c.Create(t, node)
		if i < total-late {
			c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
		}
	}
	rule := testenv.Rule(id)
	c.Create(t, rule)
	got := c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == late && r.Status.Summary.Selected == total
	})
	if want := (v1alpha1.RuleSummary{Selected: total, Held: late, Released: total - late}); *got.Status.Summary != want {
		t.Errorf("summary is %+v, want %+v", *got.Status.Summary, want)
	}
	if len(got.Status.NodeEvaluations) != v1alpha1.MaxListedNodes || len(got.Status.AppliedNodes) != v1alpha1.MaxListedNodes || !got.Status.ListsTruncated {
		t.Errorf("%d nodeEvaluations, %d appliedNodes, listsTruncated: %v", len(got.Status.NodeEvaluations), len(got.Status.AppliedNodes), got.Status.ListsTruncated)
	}
	for i := range late {
		name := fmt.Sprintf("%s-%03d", id, total-late+i)
		if first := got.Status.NodeEvaluations[i]; first.NodeName != name || first.TaintStatus != v1alpha1.TaintStatusPresent {
			t.Errorf("evaluation %d is of %s (%s), want the held node %s", i, first.NodeName, first.TaintStatus, name)
		}
		if !slices.Contains(got.Status.AppliedNodes, name) {
			t.Errorf("%s is not in appliedNodes", name)
		}
	}
}
