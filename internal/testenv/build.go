package testenv

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Condition is the condition type that rules of tests require.
const Condition = "example.com/NetworkReady"

// Node returns a node with these labels.
func Node(name string, labels map[string]string, change ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, f := range change {
		f(node)
	}
	return node
}

// WithTaint adds a NoSchedule taint to a node.
func WithTaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// Rule returns a continuous rule that holds nodes labelled pool=<its name> with the taint
// readiness.k8s.io/<its name> until Condition is True.
func Rule(name string, change ...func(*v1alpha1.NodeReadinessRule)) *v1alpha1.NodeReadinessRule {
	rule := &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: Condition, RequiredStatus: corev1.ConditionTrue}},
			Taint:           v1alpha1.Taint{Key: TaintKey(name), Value: "pending", Effect: corev1.TaintEffectNoSchedule},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(name)}},
		},
	}
	for _, f := range change {
		f(rule)
	}
	return rule
}

// BootstrapOnly makes a rule bootstrap-only.
func BootstrapOnly(r *v1alpha1.NodeReadinessRule) {
	r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly
}

// DryRun sets spec.dryRun of a rule.
func DryRun(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true }

// TaintKey returns the taint key of the rule with this name.
func TaintKey(rule string) string { return "readiness.k8s.io/" + rule }

// Pool returns the labels that the rule with this name selects.
func Pool(rule string) map[string]string { return map[string]string{"pool": rule} }

// HasTaint reports whether the node has a NoSchedule or NoExecute taint with this key.
func HasTaint(node *corev1.Node, key string) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return true
		}
	}
	return false
}

// Create creates the object and deletes it when the test ends.
func (c *Cluster) Create(t testing.TB, obj client.Object) {
	t.Helper()
	if err := c.Client.Create(t.Context(), obj); err != nil {
		t.Fatalf("creating %s: %v", obj.GetName(), err)
	}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), obj) }) // it may be gone
}

// CreateNode creates the node with this status of Condition; an empty status adds no condition. No rule
// selects the node before its condition is set.
func (c *Cluster) CreateNode(t testing.TB, node *corev1.Node, status corev1.ConditionStatus) {
	t.Helper()
	labels := node.Labels
	if status != "" {
		node.Labels = nil // no rule selects the node before the condition is set
	}
	c.Create(t, node)
	if status == "" {
		return
	}
	c.SetCondition(t, node.Name, Condition, status)
	c.Patch(t, node, func() { node.Labels = labels })
}

// SetCondition reports a condition as a reporter does: one strategic merge patch.
func (c *Cluster) SetCondition(t testing.TB, node, conditionType string, status corev1.ConditionStatus) {
	t.Helper()
	if err := c.TrySetCondition(t.Context(), node, conditionType, status); err != nil {
		t.Fatalf("setting %s=%s on %s: %v", conditionType, status, node, err)
	}
}

// TrySetCondition is SetCondition for callers that expect errors.
func (c *Cluster) TrySetCondition(ctx context.Context, node, conditionType string, status corev1.ConditionStatus) error {
	now := metav1.Now()
	base := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	changed := base.DeepCopy()
	changed.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeConditionType(conditionType), Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Test",
	}}
	return c.Client.Status().Patch(ctx, changed, client.StrategicMergeFrom(base))
}

// Patch changes the object with a merge patch.
func (c *Cluster) Patch(t testing.TB, obj client.Object, change func()) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	base := obj.DeepCopyObject().(client.Object)
	change()
	if err := c.Client.Patch(t.Context(), obj, client.MergeFrom(base)); err != nil {
		t.Fatalf("patching %s: %v", obj.GetName(), err)
	}
}
