package uninstall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removeConditions removes the reporters' conditions from all nodes: nobody updates them any
// more, and a condition that is True for ever is no health.
func (r *run) removeConditions(ctx context.Context) error {
	if len(r.Conditions) == 0 {
		return nil
	}
	return untilClean(ctx, r.everyNode(), "Conditions removed from nodes", func(context.Context) (visit[corev1.Node], error) { return r.removeConditionsOf, nil })
}

func (r *run) removeConditionsOf(ctx context.Context, node *corev1.Node) (bool, error) {
	var stale []map[string]string
	for _, condition := range node.Status.Conditions {
		if slices.Contains(r.Conditions, string(condition.Type)) {
			stale = append(stale, map[string]string{"type": string(condition.Type), "$patch": "delete"})
		}
	}
	if len(stale) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": stale}})
	if err != nil {
		return false, err
	}
	target := &corev1.Node{}
	target.Name = node.Name
	if err := r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("removing conditions: %w", err)
	}
	r.removed("node conditions", len(stale))
	return true, nil
}
