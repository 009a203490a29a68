package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/reporters"
	"github.com/readygate/readygate/internal/scenario"
)

// restartedAt is what kubectl rollout restart changes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// daemonSet makes a DaemonSet, or restarts one that is there. On a node whose taints it does not
// tolerate it has no pod at all.
func (d *player) daemonSet(ctx context.Context, given *scenario.DaemonSet) error {
	if given.Reports == "" {
		return d.restart(ctx, given.Name)
	}
	return d.create(ctx, newDaemonSet(given.Name, given.Reports, given.Labels))
}

func newDaemonSet(name, reports string, labels map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels, Annotations: map[string]string{reporters.ReportsAnnotation: reports}},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(name), Template: podTemplate(name, nil)},
	}
}

// restart does what kubectl rollout restart does.
func (d *player) restart(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{restartedAt: time.Now().Format(time.RFC3339)},
	}}}})
	if err != nil {
		return err
	}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	if err := d.client.Patch(ctx, ds, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return fmt.Errorf("restarting DaemonSet %s: %w", name, err)
	}
	return nil
}

// tolerated asks the API server whether a DaemonSet with these labels would get a toleration of
// the taint of a rule; none is made.
func (d *player) tolerated(ctx context.Context, labels map[string]string) (bool, error) {
	ds := newDaemonSet("readygate-dry-run", "", labels)
	if err := d.client.Create(ctx, ds, client.DryRunAll); err != nil {
		return false, err
	}
	return slices.ContainsFunc(ds.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return ofRule(t.Key) }), nil
}
