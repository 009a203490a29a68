package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// covered reports whether TaintedAtCreation of the rule is True.
var covered = testenv.Covered

// createCovered creates the rule and waits until TaintedAtCreation is True, or until the rule is enforced if the API server
// does not serve MutatingAdmissionPolicy.
func createCovered(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	c.Create(t, rule)
	c.EventuallyCovered(t, rule.Name)
}

func recordKey(rule *v1alpha1.NodeReadinessRule) string {
	return v1alpha1.HoldPrefix + string(rule.UID)
}

// kubelet returns a client with the identity of the kubelet of a node.
func kubelet(t *testing.T, c *testenv.Cluster, node string) client.Client {
	t.Helper()
	return c.As(t, "system:node:"+node, "system:nodes", "system:authenticated")
}

// holdOf describes what the node has of a rule: its taint, and the origin in its ownership record.
func holdOf(node *corev1.Node, rule *v1alpha1.NodeReadinessRule) string {
	var hold []string
	for _, taint := range node.Spec.Taints {
		if taint.Key == rule.Spec.Taint.Key && taint.Effect == rule.Spec.Taint.Effect {
			hold = append(hold, "taint")
		}
	}
	var record struct{ Origin string }
	if json.Unmarshal([]byte(node.Annotations[recordKey(rule)]), &record) == nil {
		hold = append(hold, record.Origin)
	}
	return strings.Join(hold, " ")
}

// The response to the creation of a node has the taint, so no pod can be scheduled before.
func TestNewNodeIsCreatedWithTheTaint(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	c.NeedMutatingPolicies(t)
	name := nameOf(t)
	rule := testenv.Rule(name)
	createCovered(t, c, rule)
	tests := []struct {
		name, node string
		as         client.Client
		change     func(*corev1.Node)
		want       string
	}{
		{name: "created by another client", node: name + "-0", as: c.Client, want: "taint created"},
		{name: "registered by a kubelet", node: name + "-1", as: kubelet(t, c, name+"-1"), want: "taint created"},
		{name: "registered with the taint already", node: name + "-2", as: kubelet(t, c, name+"-2"), change: testenv.WithTaint(testenv.TaintKey(name)), want: "taint"},
		{name: "with its condition already", node: name + "-3", as: kubelet(t, c, name+"-3"), change: reports(corev1.ConditionTrue)},
		{name: "that the rule does not select", node: name + "-4", as: c.Client, change: func(n *corev1.Node) { n.Labels = nil }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			node := testenv.Node(tc.node, testenv.Pool(name))
			if tc.change != nil {
				tc.change(node)
			}
			if err := tc.as.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Client.Delete(context.Background(), node) })
			if got := holdOf(node, rule); got != tc.want {
				t.Errorf("created with %q, want %q: %v %v", got, tc.want, node.Spec.Taints, node.Annotations)
			}
		})
	}
}

func reports(status corev1.ConditionStatus) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: testenv.Condition, Status: status}}
	}
}

// A node that was created with the taint is released when its condition is True. The policy does not add the taint again in
// the request that removes it.
func TestNodeTaintedAtCreationIsReleased(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	c.NeedMutatingPolicies(t)
	rule := testenv.Rule(nameOf(t))
	createCovered(t, c, rule)
	node := testenv.Node(rule.Name, testenv.Pool(rule.Name))
	c.Create(t, node)
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node.Name, "released", func(n *corev1.Node) bool { return holdOf(n, rule) == "" })
	c.EventuallyRule(t, rule.Name, "settled", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == 0 && r.Status.Summary.Released == 1
	})
	testenv.Eventually(t, "events of both", func(context.Context) error {
		var reasons []string
		for _, event := range c.Events(t, node) {
			reasons = append(reasons, event.Reason)
		}
		if want := []string{v1alpha1.EventTaintAdded, v1alpha1.EventTaintRemoved}; !slices.Equal(reasons, want) {
			return fmt.Errorf("events %v, want %v", reasons, want)
		}
		return nil
	})
}

// A request that sets a label, so that a rule selects an existing node, also adds the taint if the rule must hold the node.
func TestANodeIsTaintedInTheRequestThatLabelsIt(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	c.NeedMutatingPolicies(t)
	name := nameOf(t)
	rule, once, evicts := testenv.Rule(name), testenv.Rule(name+"-once", testenv.BootstrapOnly), testenv.Rule(name+"-evicts")
	evicts.Spec.Taint.Effect = corev1.TaintEffectNoExecute
	for _, r := range []*v1alpha1.NodeReadinessRule{rule, once, evicts} {
		createCovered(t, c, r)
	}
	tests := []struct {
		name   string
		rule   *v1alpha1.NodeReadinessRule
		before func(*corev1.Node)
		want   string
	}{
		{name: "a node that has reported nothing", rule: rule, want: "taint labelled"},
		{name: "a node whose condition is False", rule: rule, before: reports(corev1.ConditionFalse), want: "taint labelled"},
		{name: "a node whose condition is True", rule: rule, before: reports(corev1.ConditionTrue)},
		{name: "a node that is new to a bootstrap-only rule", rule: once, want: "taint labelled"},
		{name: "a node that has completed", rule: once, before: func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.CompletedPrefix + string(once.UID): `{"rule-name":"` + once.Name + `"}`}
		}},
		{name: "a rule that would evict", rule: evicts},
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			node := testenv.Node(fmt.Sprintf("%s-%d", name, i), nil)
			if tc.before != nil {
				tc.before(node)
			}
			c.Create(t, node)
			c.Patch(t, node, func() { node.Labels = testenv.Pool(tc.rule.Name) })
			if got := holdOf(node, tc.rule); got != tc.want {
				t.Errorf("labelled with %q, want %q: %v %v", got, tc.want, node.Spec.Taints, node.Annotations)
			}
			c.Patch(t, node, func() { node.Labels = nil })
			c.EventuallyNode(t, node.Name, "released", func(n *corev1.Node) bool { return holdOf(n, tc.rule) == "" })
		})
	}
}

// A kubelet may not change taints, and the API server must not reject its request because the policy adds one: the manager
// taints the node shortly after.
func TestKubeletMayLabelItsNode(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	rule := testenv.Rule(nameOf(t))
	createCovered(t, c, rule)
	node := testenv.Node(rule.Name, nil)
	as := kubelet(t, c, node.Name)
	c.Create(t, node)
	base := node.DeepCopy()
	node.Labels = testenv.Pool(rule.Name)
	if err := as.Patch(t.Context(), node, client.MergeFrom(base)); err != nil {
		t.Fatalf("rejected: %v", err)
	}
	if got := holdOf(node, rule); got != "" {
		t.Errorf("the request itself added %q", got)
	}
	c.EventuallyNode(t, node.Name, "held", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint added" })
}

// A write of nodes/status can change labels, but not taints. The policy must not add a record there: its taint would be
// dropped.
func TestALabelSetThroughTheStatusLeavesNoFalseRecord(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	rule := testenv.Rule(nameOf(t))
	createCovered(t, c, rule)
	node := testenv.Node(rule.Name, nil)
	c.Create(t, node)
	base := node.DeepCopy()
	node.Labels = testenv.Pool(rule.Name)
	if err := c.Client.Status().Patch(t.Context(), node, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	if node.Labels["pool"] != rule.Name {
		t.Fatalf("labels are %v: nodes/status does not change labels", node.Labels)
	}
	if got := holdOf(node, rule); got != "" {
		t.Errorf("the request itself added %q", got)
	}
	c.EventuallyNode(t, node.Name, "held", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint added" })
}
