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

// removePolicies deletes the policies that taint new nodes and gate new pods, and waits until no API server applies
// them anymore. It also waits if they do not exist: an earlier run that was killed may just have deleted them.
func (r *run) removePolicies(ctx context.Context) error {
	nodes := r.removePolicy(ctx, admission.TaintNewNodesBinding(), admission.TaintNewNodesPolicy())
	pods := r.removePolicy(ctx, admission.GateNewPodsBinding(), admission.GateNewPodsPolicy())
	if meta.IsNoMatchError(nodes) && meta.IsNoMatchError(pods) {
		log.Info("No policies to remove: the cluster does not serve MutatingAdmissionPolicy")
		return nil
	}
	if err := errors.Join(nodes, pods); err != nil {
		return err
	}
	if !sleep(ctx, r.SettleTime) {
		return fmt.Errorf("waiting until no API server applies the removed policies: %w", ctx.Err())
	}
	log.Info("Policies removed", "settled", r.SettleTime.String())
	return nil
}

// removePolicy deletes a policy, its binding first.
func (r *run) removePolicy(ctx context.Context, binding, policy client.Object) error {
	deleted, what := 0, "policy "+policy.GetName()
	for _, obj := range []client.Object{binding, policy} {
		done, err := r.deleteOurs(ctx, obj)
		if err != nil {
			return fmt.Errorf("removing %s: %w", what, err)
		}
		if done {
			deleted++
		}
	}
	r.removed("objects of "+what, deleted)
	return nil
}

// deleteOurs deletes the object of this name, if it exists and has the label of Readygate.
func (r *run) deleteOurs(ctx context.Context, obj client.Object) (bool, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if err := r.client.Get(ctx, types.NamespacedName{Name: obj.GetName()}, obj); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !admission.IsOurs(obj) {
		r.stays(fmt.Sprintf("%s %s: without the label %s=%s it does not belong to Readygate", kind, obj.GetName(), admission.PartOfLabel, admission.PartOf))
		return false, nil
	}
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	return err == nil, client.IgnoreNotFound(err)
}
