package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/testenv"
)

// each does something for every number below n, by so many writers at the same time, and stops
// at the first failure.
func each(ctx context.Context, n, writers int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan int)
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for i := range numbers {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	wait.Wait()
	return context.Cause(ctx)
}

// paced is each at so many a second, as long as the writers keep up.
func paced(ctx context.Context, n, writers int, rate float64, do func(ctx context.Context, i int) error) error {
	began := time.Now()
	return each(ctx, n, writers, func(ctx context.Context, i int) error {
		if err := sleepUntil(ctx, began.Add(time.Duration(float64(i)/rate*float64(time.Second)))); err != nil {
			return err
		}
		return do(ctx, i)
	})
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// report sets the condition that the rules require, as a reporter does.
func (w *world) report(ctx context.Context, node string, status corev1.ConditionStatus) error {
	now := metav1.Now()
	return w.patchConditions(ctx, node, "readygate-reporter", corev1.NodeCondition{
		Type: testenv.Condition, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Reported", Message: "the agent of the network says so",
	})
}

// heartbeat is what a kubelet sends when nothing has changed.
func (w *world) heartbeat(ctx context.Context, node string) error {
	return w.patchConditions(ctx, node, "kubelet", kubeletConditions(time.Now())...)
}

func (w *world) patchConditions(ctx context.Context, node, manager string, conditions ...corev1.NodeCondition) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager}
	// Only metadata is asked for in return: the load must not cost more than it has to.
	_, err = w.metadata.Resource(nodesResource).Patch(ctx, node, types.StrategicMergePatchType, patch, options, "status")
	return err
}

// register creates a node, in the name of its kubelet, with these taints.
func (w *world) register(ctx context.Context, i int, taints []corev1.Taint) error {
	node := newNode(i, time.Now())
	node.Spec.Taints = taints
	_, err := w.api.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{FieldManager: "kubelet"})
	if err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	return nil
}

// populate creates all nodes, with the condition as it is at first.
func (w *world) populate(ctx context.Context, status corev1.ConditionStatus) error {
	return each(ctx, w.size.Nodes, w.size.Writers, func(ctx context.Context, i int) error {
		return errors.Join(w.register(ctx, i, nil), w.report(ctx, nodeName(i), status))
	})
}

// flip sets the condition of nodes as fast as the API server takes it.
func (w *world) flip(ctx context.Context, names []string, status corev1.ConditionStatus) error {
	return each(ctx, len(names), w.size.Writers, func(ctx context.Context, i int) error { return w.report(ctx, names[i], status) })
}
