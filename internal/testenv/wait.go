package testenv

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// patience is how long something may take that always comes: long, because machines that
// run tests are slow at times, and a test that passes does not wait.
const patience = 3 * time.Minute

// Eventually waits until the check has nothing to complain about.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if last == nil || ctx.Err() == nil { // what fails because time is up says nothing
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, last)
	}
}

// EventuallyNode waits until the node satisfies the check, and returns it.
func (c *Cluster) EventuallyNode(t testing.TB, name, what string, check func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	var node corev1.Node
	Eventually(t, fmt.Sprintf("node %s: %s", name, what), func(ctx context.Context) error {
		node = corev1.Node{}
		if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
			return err
		}
		if !check(&node) {
			return fmt.Errorf("taints %v, annotations %v", node.Spec.Taints, node.Annotations)
		}
		return nil
	})
	return &node
}

// EventuallyRule waits until the rule satisfies the check, and returns it.
func (c *Cluster) EventuallyRule(t testing.TB, name, what string, check func(*v1alpha1.NodeReadinessRule) bool) *v1alpha1.NodeReadinessRule {
	t.Helper()
	var rule v1alpha1.NodeReadinessRule
	Eventually(t, fmt.Sprintf("rule %s: %s", name, what), func(ctx context.Context) error {
		rule = v1alpha1.NodeReadinessRule{}
		if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, &rule); err != nil {
			return err
		}
		if !check(&rule) {
			return fmt.Errorf("status %+v", rule.Status)
		}
		return nil
	})
	return &rule
}

// Is says whether a rule's condition has this status and reason, for the rule as it is now.
func Is(conditionType string, status metav1.ConditionStatus, reason string) func(*v1alpha1.NodeReadinessRule) bool {
	return func(rule *v1alpha1.NodeReadinessRule) bool {
		condition := meta.FindStatusCondition(rule.Status.Conditions, conditionType)
		return condition != nil && condition.Status == status && condition.Reason == reason && condition.ObservedGeneration == rule.Generation
	}
}

// Enforced says whether the rule is enforced, as it is now.
var Enforced = Is(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced)
