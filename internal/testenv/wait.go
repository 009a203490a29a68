package testenv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// eventuallyTimeout is long because test machines can be slow; a test that passes does not wait for it.
const eventuallyTimeout = 3 * time.Minute

// Eventually waits until the check returns nil.
func Eventually(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, eventuallyTimeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if last == nil || ctx.Err() == nil { // an error caused by the deadline explains nothing
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
	return eventually(t, c, &corev1.Node{}, name, what, check, func(n *corev1.Node) string {
		return fmt.Sprintf("taints %v, annotations %v", n.Spec.Taints, n.Annotations)
	})
}

// EventuallyRule waits until the rule satisfies the check, and returns it.
func (c *Cluster) EventuallyRule(t testing.TB, name, what string, check func(*v1alpha1.NodeReadinessRule) bool) *v1alpha1.NodeReadinessRule {
	t.Helper()
	return eventually(t, c, &v1alpha1.NodeReadinessRule{}, name, what, check, func(r *v1alpha1.NodeReadinessRule) string {
		return fmt.Sprintf("status %+v", r.Status)
	})
}

func eventually[T client.Object](t testing.TB, c *Cluster, empty T, name, what string, check func(T) bool, describe func(T) string) T {
	t.Helper()
	var obj T
	Eventually(t, fmt.Sprintf("%T %s: %s", empty, name, what), func(ctx context.Context) error {
		obj = empty.DeepCopyObject().(T)
		if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, obj); err != nil {
			return err
		}
		if !check(obj) {
			return errors.New(describe(obj))
		}
		return nil
	})
	return obj
}

// Is returns a check that a condition of the rule has this status and reason for the current generation.
func Is(conditionType string, status metav1.ConditionStatus, reason string) func(*v1alpha1.NodeReadinessRule) bool {
	return func(rule *v1alpha1.NodeReadinessRule) bool {
		condition := meta.FindStatusCondition(rule.Status.Conditions, conditionType)
		return condition != nil && condition.Status == status && condition.Reason == reason && condition.ObservedGeneration == rule.Generation
	}
}

// Enforced reports whether the current generation of the rule is enforced.
var Enforced = Is(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced)
