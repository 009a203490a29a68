package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/testenv"
)

// writers is the number of concurrent writes of the load.
const writers = 16

// each calls do for every number below n, concurrently, and stops at the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := 0; i < n && each.Err() == nil; i++ {
		group.Go(func() error { return do(each, i) })
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// paced is each with a rate limit per second. The actual rate is lower if the writers are too slow.
func paced(ctx context.Context, n int, rate float64, do func(ctx context.Context, i int) error) error {
	began := time.Now()
	return each(ctx, n, func(ctx context.Context, i int) error {
		if err := sleep(ctx, time.Until(began.Add(time.Duration(float64(i)/rate*float64(time.Second))))); err != nil {
			return err
		}
		return do(ctx, i)
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// setConditions sets the condition of nodes as fast as the API server accepts it.
func (w *world) setConditions(ctx context.Context, names []string, status corev1.ConditionStatus) error {
	return each(ctx, len(names), func(ctx context.Context, i int) error { return w.setCondition(ctx, names[i], status) })
}

// setCondition sets the condition that the rules require, as a reporter does.
func (w *world) setCondition(ctx context.Context, node string, status corev1.ConditionStatus) error {
	now := metav1.Now()
	return w.patchConditions(ctx, node, "readygate-reporter", corev1.NodeCondition{
		Type: testenv.Condition, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Reported", Message: "reported by the network agent",
	})
}

// heartbeat sends the status that a kubelet sends if nothing has changed.
func (w *world) heartbeat(ctx context.Context, node string) error {
	return w.patchConditions(ctx, node, "kubelet", kubeletConditions(time.Now())...)
}

func (w *world) patchConditions(ctx context.Context, node, manager string, conditions ...corev1.NodeCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	// The response is metadata only, so that the load costs less.
	_, err = w.metadata.Resource(nodesResource).Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	return err
}

// register creates a node with these taints, as its kubelet does.
func (w *world) register(ctx context.Context, i int, taints []corev1.Taint) error {
	node := newNode(i, time.Now())
	node.Spec.Taints = taints
	if _, err := w.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{FieldManager: "kubelet"}); err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	return nil
}

// populate creates all nodes, not ready.
func (w *world) populate(ctx context.Context) error {
	return each(ctx, w.Nodes, func(ctx context.Context, i int) error {
		return errors.Join(w.register(ctx, i, nil), w.setCondition(ctx, w.names[i], corev1.ConditionFalse))
	})
}
