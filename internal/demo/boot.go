package demo

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/scenario"
)

// boot lets a node go away for a reboot, or be there in another boot. Conditions that reporters
// wrote stay as they are, as on a machine that reboots.
func (d *player) boot(ctx context.Context, boot *scenario.Boot) error {
	node := boot.Node
	d.reporters.shutDown(node)
	if boot.Away {
		// KWOK must know before it sees that the node is not Ready.
		if err := d.markAway(ctx, node, "true"); err != nil {
			return err
		}
		return d.writeKubelet(ctx, node, away())
	}
	if err := d.writeKubelet(ctx, node, back()); err != nil {
		return err
	}
	if err := d.markAway(ctx, node, nil); err != nil {
		return err
	}
	return d.reporters.boot(ctx, node)
}

// away is the status of a node whose kubelet is not heard of.
func away() map[string]any {
	return map[string]any{"conditions": []corev1.NodeCondition{kubelet(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")}}
}

// back is the status of a node that has booted: both things are said at the same time.
func back() map[string]any {
	return map[string]any{
		"conditions": []corev1.NodeCondition{kubelet(corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")},
		"nodeInfo":   map[string]string{"bootID": string(uuid.NewUUID())},
	}
}

func kubelet(ready corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	now := metav1.Now()
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
}

// writeKubelet writes the node status as a kubelet does; other conditions stay as they are.
func (d *player) writeKubelet(ctx context.Context, node string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	obj := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := d.client.Status().Patch(ctx, obj, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of %s: %w", node, err)
	}
	return nil
}

// markAway puts the annotation on a node, or takes it off if the value is nil.
func (d *player) markAway(ctx context.Context, node string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{controlplane.RebootAnnotation: value}}})
	if err != nil {
		return err
	}
	obj := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := d.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("marking %s: %w", node, err)
	}
	return nil
}
