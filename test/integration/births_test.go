package integration_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testkit"
)

// covered says whether nodes are born with the rule's taint.
var covered = testkit.Is(v1alpha1.ConditionBirthsCovered, metav1.ConditionTrue, v1alpha1.ReasonCovered)

// createCovered makes the rule and waits until births are covered.
func createCovered(t *testing.T, c *testkit.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	c.Create(t, rule)
	c.EventuallyRule(t, rule.Name, "covered", covered)
}

func recordKey(rule *v1alpha1.NodeReadinessRule) string {
	return v1alpha1.HoldPrefix + string(rule.UID)
}

// kubelet is the identity of the kubelet of a node.
func kubelet(t *testing.T, c *testkit.Cluster, node string) client.Client {
	t.Helper()
	return c.As(t, "system:node:"+node, "system:nodes", "system:authenticated")
}

// What the API server answers to the creation itself is tainted: nobody could come before.
func TestANodeIsBornWithTheTaint(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	name := nameOf(t)
	rule := testkit.Rule(name)
	createCovered(t, c, rule)
	born := func(node *corev1.Node) map[string]bool {
		return map[string]bool{"taint": testkit.HasTaint(node, testkit.TaintKey(name)), "record": node.Annotations[recordKey(rule)] != ""}
	}
	tests := map[string]struct {
		as     client.Client
		change func(*corev1.Node)
		want   map[string]bool
	}{
		"created by somebody":     {as: c.Client, want: map[string]bool{"taint": true, "record": true}},
		"registered by a kubelet": {as: kubelet(t, c, name+"-1"), want: map[string]bool{"taint": true, "record": true}},
		"registered with the taint already": {as: kubelet(t, c, name+"-2"), change: testkit.WithTaint(testkit.TaintKey(name)),
			want: map[string]bool{"taint": true, "record": false}},
		"that the rule does not select": {as: c.Client, change: func(n *corev1.Node) { n.Labels = nil }, want: map[string]bool{"taint": false, "record": false}},
	}
	names := map[string]string{"created by somebody": "-0", "registered by a kubelet": "-1", "registered with the taint already": "-2", "that the rule does not select": "-3"}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			node := testkit.Node(name+names[what], testkit.Pool(name))
			if tc.change != nil {
				tc.change(node)
			}
			if err := tc.as.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Client.Delete(context.Background(), node) })
			if got := born(node); got["taint"] != tc.want["taint"] || got["record"] != tc.want["record"] {
				t.Errorf("born with %v, want %v: %v %v", got, tc.want, node.Spec.Taints, node.Annotations)
			}
			if n := len(taintsOf(node, testkit.TaintKey(name))); n > 1 {
				t.Errorf("%d taints of the rule", n)
			}
		})
	}
}

func taintsOf(node *corev1.Node, key string) []corev1.Taint {
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			taints = append(taints, taint)
		}
	}
	return taints
}

