package integration_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// TestBehaviour tests that the manager applies plans and emits their events. TestPlanBehaviour in
// internal/core/noderule tests all combinations of mode, requirements and taint.
func TestBehaviour(t *testing.T) {
	const (
		met   = corev1.ConditionTrue
		unmet = corev1.ConditionFalse
	)
	tests := map[string]struct {
		mode      v1alpha1.EnforcementMode
		status    corev1.ConditionStatus
		tainted   bool
		completed bool

		wantTaint     bool
		wantCompleted bool
		wantEvents    []string
	}{
		"added": {
			mode: v1alpha1.EnforcementModeContinuous, status: unmet,
			wantTaint: true, wantEvents: []string{v1alpha1.EventTaintAdded},
		},
		"adopted": {
			mode: v1alpha1.EnforcementModeContinuous, status: unmet, tainted: true,
			wantTaint: true, wantEvents: []string{v1alpha1.EventTaintAdopted},
		},
		"removed and completed": {
			mode: v1alpha1.EnforcementModeBootstrapOnly, status: met, tainted: true,
			wantCompleted: true, wantEvents: []string{v1alpha1.EventTaintRemoved},
		},
		"completed before": {
			mode: v1alpha1.EnforcementModeBootstrapOnly, status: unmet, completed: true,
			wantCompleted: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = tc.mode })
			c.Create(t, rule)
			node := testenv.Node(id, testenv.Pool(id))
			if tc.tainted {
				testenv.WithTaint(rule.Spec.Taint.Key)(node)
			}
			if tc.completed {
				node.Annotations = map[string]string{completedKey(rule): `{"rule-name":"` + id + `"}`}
			}
			c.CreateNode(t, node, tc.status)

			got := c.EventuallyNode(t, id, "as in the test case", func(n *corev1.Node) bool {
				_, completed := n.Annotations[completedKey(rule)]
				return testenv.HasTaint(n, rule.Spec.Taint.Key) == tc.wantTaint && completed == tc.wantCompleted &&
					owned(n, rule) == tc.wantTaint
			})
			if value := got.Annotations[completedKey(rule)]; tc.wantCompleted && value != `{"rule-name":"`+id+`"}` {
				t.Errorf("completion annotation is %q", value)
			}
			c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
				return testenv.Enforced(r) && r.Status.Summary.Selected == 1
			})
			wantEvents(t, c, got, tc.wantEvents...)
		})
	}
}

func TestBootstrapOnlyStopsAtTheFirstRelease(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), corev1.ConditionFalse)
	c.EventuallyNode(t, id, "held", held(rule))
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(rule))

	c.SetCondition(t, id, testenv.Condition, corev1.ConditionFalse)
	c.EventuallyRule(t, id, "evaluated after the change", func(r *v1alpha1.NodeReadinessRule) bool {
		return len(r.Status.NodeEvaluations) == 1 && r.Status.NodeEvaluations[0].ConditionResults[0].CurrentStatus == corev1.ConditionFalse
	})
	c.EventuallyNode(t, id, "still released", free(rule))
}

func TestContinuousHoldsAgain(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), corev1.ConditionTrue)
	for range 3 {
		c.EventuallyNode(t, id, "released", free(rule))
		c.SetCondition(t, id, testenv.Condition, corev1.ConditionFalse)
		c.EventuallyNode(t, id, "held", held(rule))
		c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	}
	c.EventuallyNode(t, id, "released", free(rule))
}

func TestARecreatedNodeHasNoRecords(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	c.Create(t, rule)
	node := testenv.Node(id, testenv.Pool(id))
	c.CreateNode(t, node, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "completed", func(n *corev1.Node) bool { return n.Annotations[completedKey(rule)] != "" })
	if err := c.Client.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	c.Create(t, testenv.Node(id, testenv.Pool(id)))
	c.EventuallyNode(t, id, "held", held(rule))
}

// Both rules hold the same node, with one write for both.
func TestTwoRulesShareANode(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	network := testenv.Rule(id + "-net")
	storage := testenv.Rule(id + "-csi")
	for _, rule := range []*v1alpha1.NodeReadinessRule{network, storage} {
		rule.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(id)}
		c.Create(t, rule)
	}
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	c.EventuallyNode(t, id, "held by both", func(n *corev1.Node) bool { return held(network)(n) && held(storage)(n) })
	if err := c.Client.Delete(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	c.EventuallyNode(t, id, "held by one", func(n *corev1.Node) bool {
		return held(storage)(n) && !testenv.HasTaint(n, network.Spec.Taint.Key) && !owned(n, network)
	})
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(storage))
}

// completedKey returns the key of the completion record of a bootstrap-only rule.
func completedKey(rule client.Object) string {
	return v1alpha1.CompletedPrefix + string(rule.GetUID())
}

// owned reports whether the node has the ownership record of the rule.
func owned(node *corev1.Node, rule client.Object) bool {
	_, ok := node.Annotations[v1alpha1.HoldPrefix+string(rule.GetUID())]
	return ok
}

// held reports whether the node has the taint and the ownership record of the rule.
func held(rule *v1alpha1.NodeReadinessRule) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) && owned(n, rule) }
}

// free reports whether the node has neither the taint nor the ownership record of the rule.
func free(rule *v1alpha1.NodeReadinessRule) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool { return !testenv.HasTaint(n, rule.Spec.Taint.Key) && !owned(n, rule) }
}
