package demo

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
)

// takeBack removes from a cluster of others what the demo has put there. Rules go first, while
// there is a manager who takes their taints off, opens their gates and lets them go; nodes while
// KWOK can end their pods.
func (s *show) takeBack(ctx context.Context) error {
	nodes := s.stage.nodesMade()
	err := s.stage.remove(ctx, func(obj client.Object) bool { return isA[*v1alpha1.NodeReadinessRule](obj) || isPodRule(obj) })
	err = errors.Join(err, s.stage.remove(ctx, func(obj client.Object) bool {
		return obj.GetNamespace() == Namespace || obj.GetName() == Namespace
	}))
	err = errors.Join(err, s.stage.remove(ctx, isA[*corev1.Node]))
	if s.kwok != nil {
		s.kwok.stop()
		s.kwok = nil
	}
	err = errors.Join(err, s.stage.deleteLeases(ctx, nodes), s.manager.stop())
	s.manager = nil
	err = errors.Join(err, s.stage.remove(ctx, anything))
	if err != nil {
		return fmt.Errorf("not everything could be taken back: %w", err)
	}
	s.teller.say("Nothing of the demo is left in the cluster.")
	return nil
}

func isA[T client.Object](obj client.Object) bool {
	_, is := obj.(T)
	return is
}

// nodesMade are the names of the nodes that were made.
func (t *trail) nodesMade() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var nodes []string
	for _, obj := range t.made {
		if isA[*corev1.Node](obj) {
			nodes = append(nodes, obj.GetName())
		}
	}
	return nodes
}

// deleteLeases removes the leases of nodes, which KWOK keeps for them, and those of their agents.
func (t *trail) deleteLeases(ctx context.Context, nodes []string) error {
	var errs []error
	for _, name := range nodes {
		for _, key := range []metav1.ObjectMeta{
			{Namespace: corev1.NamespaceNodeLease, Name: name},
			{Namespace: agents.Namespace, Name: agents.Name(name)},
		} {
			if err := t.client.Delete(ctx, &coordinationv1.Lease{ObjectMeta: key}); err != nil && !gone(err) {
				errs = append(errs, fmt.Errorf("deleting the lease %s/%s: %w", key.Namespace, key.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
