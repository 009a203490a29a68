package uninstall

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
)

// removePolicies deletes the policies that taint nodes and put gates on pods, and waits until no
// API server does so any more. It waits also if there was nothing to delete: a run that was killed
// may have deleted them a moment ago.
func (r *run) removePolicies(ctx context.Context) error {
	err := errors.Join(
		r.removePolicy(ctx, "policy for new nodes", admission.TaintNewNodesBinding(), admission.TaintNewNodesPolicy()),
		r.removePolicy(ctx, "policy for new pods", admission.GateNewPodsBinding(), admission.GateNewPodsPolicy()))
	if meta.IsNoMatchError(err) {
		log.Info("Policies removed: the cluster has no such API")
		return nil
	}
	if err != nil {
		return err
	}
	if !sleep(ctx, r.SettleTime) {
		return fmt.Errorf("waiting until no API server taints nodes or gates pods: %w", ctx.Err())
	}
	log.Info("Policies removed", "settled", r.SettleTime.String())
	return nil
}

// removePolicy deletes a policy, its binding first.
func (r *run) removePolicy(ctx context.Context, what string, binding, text client.Object) error {
	deleted := 0
	for _, obj := range []client.Object{binding, text} {
		done, err := r.deleteOurs(ctx, obj)
		if err != nil {
			return fmt.Errorf("removing the %s: %w", what, err)
		}
		if done {
			deleted++
		}
	}
	r.removed("objects of the "+what, deleted)
	return nil
}

// deleteOurs deletes an object of this name, if there is one and Readygate installed it.
func (r *run) deleteOurs(ctx context.Context, obj client.Object) (bool, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if err := r.client.Get(ctx, types.NamespacedName{Name: obj.GetName()}, obj); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !admission.IsOurs(obj) {
		r.stays(fmt.Sprintf("%s %s: it lacks the label %s=%s, so it is not Readygate's", kind, obj.GetName(), admission.PartOfLabel, admission.PartOf))
		return false, nil
	}
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	return err == nil, client.IgnoreNotFound(err)
}
