package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// Each test checks for a fault that is known of other controllers of this API.

func TestRelabellingOrphansNoTaint(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	node := testenv.Node(id, testenv.Pool(id), testenv.WithTaint("example.com/foreign"))
	c.CreateNode(t, node, "")
	c.EventuallyNode(t, id, "held", held(rule))
	c.Patch(t, node, func() { node.Labels = map[string]string{"pool": "other"} })
	got := c.EventuallyNode(t, id, "released", free(rule))
	if !testenv.HasTaint(got, "example.com/foreign") {
		t.Error("a foreign taint is lost")
	}
}

func TestATaintThatNoRuleOwnedIsLeftAlone(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	node := testenv.Node(id, map[string]string{"pool": "other"}, testenv.WithTaint(rule.Spec.Taint.Key))
	c.Create(t, node)
	c.Create(t, rule)
	c.EventuallyRule(t, id, "enforced", testenv.Enforced)
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	c.EventuallyNode(t, id, "still tainted", func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) })
}

func TestDeletingARuleRemovesItsTaintsAndRecords(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id+"-held", testenv.Pool(id)), corev1.ConditionFalse)
	c.CreateNode(t, testenv.Node(id+"-done", testenv.Pool(id)), corev1.ConditionTrue)
	c.EventuallyNode(t, id+"-held", "held", held(rule))
	c.EventuallyNode(t, id+"-done", "completed", func(n *corev1.Node) bool { return n.Annotations[completedKey(rule)] != "" })
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	// The finalizer is removed last: when the rule is gone, nodes are clean.
	for _, name := range []string{id + "-held", id + "-done"} {
		var node corev1.Node
		if err := c.Client.Get(t.Context(), types.NamespacedName{Name: name}, &node); err != nil {
			t.Fatal(err)
		}
		if !free(rule)(&node) || len(node.Annotations) > 0 {
			t.Errorf("%s still has taints %v, annotations %v", name, node.Spec.Taints, node.Annotations)
		}
	}
}

func TestDeletingADryRunRuleTouchesNothing(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.DryRun)
	node := testenv.Node(id, testenv.Pool(id), testenv.WithTaint(rule.Spec.Taint.Key))
	c.CreateNode(t, node, corev1.ConditionTrue)
	c.Create(t, rule)
	c.EventuallyRule(t, id, "in dry run", func(r *v1alpha1.NodeReadinessRule) bool {
		return r.Status.DryRunResults != nil && r.Status.DryRunResults.TaintsToRemove == 1
	})
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	c.EventuallyNode(t, id, "still tainted", func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) })
	wantEvents(t, c, node)
}

func TestDryRunResultsFollowTheNodes(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.DryRun)
	c.Create(t, rule)
	previews := func(selected, add, remove, risky int32) func(*v1alpha1.NodeReadinessRule) bool {
		return func(r *v1alpha1.NodeReadinessRule) bool {
			got := r.Status.DryRunResults
			return got != nil && got.AffectedNodes == selected && got.TaintsToAdd == add && got.TaintsToRemove == remove && got.RiskyOperations == risky
		}
	}
	c.EventuallyRule(t, id, "no node", previews(0, 0, 0, 0))
	c.CreateNode(t, testenv.Node(id+"-1", testenv.Pool(id)), "")
	c.EventuallyRule(t, id, "one to taint, never reported", previews(1, 1, 0, 1))
	c.SetCondition(t, id+"-1", testenv.Condition, corev1.ConditionTrue)
	c.EventuallyRule(t, id, "nothing to do", previews(1, 0, 0, 0))
	c.CreateNode(t, testenv.Node(id+"-2", testenv.Pool(id), testenv.WithTaint(rule.Spec.Taint.Key)), corev1.ConditionTrue)
	got := c.EventuallyRule(t, id, "one to untaint", previews(2, 0, 1, 0))
	if !testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonDryRun)(got) || got.Status.Summary.Held != 0 {
		t.Errorf("a rule in dry run reports applied nodes: %+v", got.Status)
	}

	c.Patch(t, rule, func() { rule.Spec.DryRun = false })
	c.EventuallyNode(t, id+"-2", "released", free(rule))
	got = c.EventuallyRule(t, id, "enforced", testenv.Enforced)
	if got.Status.DryRunResults != nil {
		t.Error("an enforced rule still has dry-run results")
	}
}

// When a rule changes to dry run, its taints stay. When the rule is deleted, they are removed.
func TestSettingDryRunFreezesWhatARuleHolds(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	c.EventuallyNode(t, id, "held", held(rule))
	c.Patch(t, rule, func() { rule.Spec.DryRun = true })
	c.EventuallyRule(t, id, "in dry run", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonDryRun))
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyRule(t, id, "one to untaint", func(r *v1alpha1.NodeReadinessRule) bool { return r.Status.DryRunResults.TaintsToRemove == 1 })
	c.EventuallyNode(t, id, "still held", held(rule))
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	c.EventuallyNode(t, id, "released", free(rule))
}

func TestATaintRemovedByHandComesBack(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	node := testenv.Node(id, testenv.Pool(id))
	c.CreateNode(t, node, "")
	c.EventuallyNode(t, id, "held", held(rule))
	c.Patch(t, node, func() { node.Spec.Taints = nil })
	c.EventuallyNode(t, id, "held again", held(rule))
}

func TestYoungerRuleInConflictIsNotEnforced(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	first := testenv.Rule(id)
	c.Create(t, first)
	// The younger rule manages the same taint on the same nodes for another condition.
	second := testenv.Rule(id+"-2", func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.Taint, r.Spec.NodeSelector = first.Spec.Taint, first.Spec.NodeSelector
		r.Spec.Conditions[0].Type = "example.com/Other"
	}, testenv.DryRun)
	testenv.Eventually(t, "a later second", func(ctx context.Context) error {
		return orderedAfter(ctx, c, first)
	})
	c.Create(t, second) // in dry run, which is not rejected
	c.Patch(t, second, func() { second.Spec.DryRun = false })
	loser := c.EventuallyRule(t, second.Name, "not accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict))
	if message := loser.Status.Conditions[0].Message; !strings.Contains(message, first.Name) || !strings.Contains(message, first.Spec.Taint.Key) {
		t.Errorf("the message names neither rule nor taint: %s", message)
	}
	if event := eventOf(t, c, second, v1alpha1.EventConflict); event.Type != corev1.EventTypeWarning {
		t.Errorf("the event is %s", event.Type)
	}
	node := testenv.Node(id, testenv.Pool(id))
	c.CreateNode(t, node, corev1.ConditionTrue)
	c.EventuallyRule(t, first.Name, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Released == 1
	})
	wantEvents(t, c, node)

	// When the winner is deleted, the other rule is enforced, without a change of that rule.
	if err := c.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	c.EventuallyNode(t, id, "held by the other rule", held(second))
	c.EventuallyRule(t, second.Name, "enforced", testenv.Enforced)
}

// orderedAfter returns an error until an object created now is younger than the rule: creation times have a resolution of
// one second.
func orderedAfter(ctx context.Context, c *testenv.Cluster, rule client.Object) error {
	probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "clock-"}}
	if err := c.Client.Create(ctx, probe, client.DryRunAll); err != nil {
		return err
	}
	if probe.CreationTimestamp.After(rule.GetCreationTimestamp().Time) {
		return nil
	}
	return errors.New("still the same second")
}

func TestAForeignStatusWriteIsCorrected(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	right := func(r *v1alpha1.NodeReadinessRule) bool { return testenv.Enforced(r) && r.Status.Summary.Held == 1 }
	c.EventuallyRule(t, id, "correct", right)
	base := rule.DeepCopy()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), base); err != nil {
		t.Fatal(err)
	}
	wrong := base.DeepCopy()
	wrong.Status.Summary.Held, wrong.Status.Conditions = 99, nil
	if err := c.Client.Status().Patch(t.Context(), wrong, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, id, "correct again", right)
}

func TestForeignFinalizersSurvive(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{"example.com/before"} })
	c.Create(t, rule)
	c.EventuallyRule(t, id, "with Readygate's finalizer", func(r *v1alpha1.NodeReadinessRule) bool { return slices.Contains(r.Finalizers, v1alpha1.Finalizer) })
	c.Patch(t, rule, func() { rule.Finalizers = append(rule.Finalizers, "example.com/after") })
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, id, "without Readygate's finalizer only", func(r *v1alpha1.NodeReadinessRule) bool {
		return slices.Equal(r.Finalizers, []string{"example.com/before", "example.com/after"})
	})
	c.Patch(t, rule, func() { rule.Finalizers = nil })
	gone(t, c, rule)
}

// A node that joins cannot mark itself as completed with the older record, whose key can be guessed.
func TestANewNodeCannotMarkItselfCompleted(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	old := testenv.Node(id+"-old", testenv.Pool(id), func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.CompletedPrefix + id: "true"}
	})
	c.Create(t, old)
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, old) })
	c.Create(t, rule)
	taken := c.EventuallyRule(t, id, "taken over", func(r *v1alpha1.NodeReadinessRule) bool { return r.Status.TakenOverAt != nil })
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, taken) })

	young := testenv.Node(id+"-new", testenv.Pool(id), func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.CompletedPrefix + id: "true"}
	})
	c.Create(t, young)
	c.EventuallyNode(t, young.Name, "held", held(rule))
	got := c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Selected == 2
	})
	if got.Status.Summary.Held != 1 {
		t.Errorf("holds %d nodes: the record of an older node must count", got.Status.Summary.Held)
	}
	c.EventuallyNode(t, old.Name, "unchanged", free(rule))
}

// gone waits until the object is gone.
func gone(t *testing.T, c *testenv.Cluster, obj client.Object) {
	t.Helper()
	testenv.Eventually(t, obj.GetName()+" to be gone", func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there (%v)", err)
	})
}
