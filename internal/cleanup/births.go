package cleanup

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/policy"
)

// removeBirths deletes the births policy, its binding first, and waits until no API server
// taints nodes any more. It waits also if there was nothing to delete: a run that was killed
// may have deleted it a moment ago.
func (r *run) removeBirths(ctx context.Context) error {
	deleted := 0
	for _, obj := range []client.Object{policy.BirthsBinding(), policy.BirthsPolicy()} {
		done, err := r.deleteOurs(ctx, obj)
		if meta.IsNoMatchError(err) {
			log.Info("Births policy removed: the cluster has no such API")
			return nil
		}
		if err != nil {
			return fmt.Errorf("removing the births policy: %w", err)
		}
		if done {
			deleted++
		}
	}
	r.removed("objects of the births policy", deleted)
	if !sleep(ctx, r.SettleTime) {
		return fmt.Errorf("waiting until no API server taints nodes: %w", ctx.Err())
	}
	log.Info("Births policy removed", "objects", deleted, "settled", r.SettleTime.String())
	return nil
}

// deleteOurs deletes an object of this name, if there is one and Readygate installed it.
func (r *run) deleteOurs(ctx context.Context, obj client.Object) (bool, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if err := r.client.Get(ctx, types.NamespacedName{Name: obj.GetName()}, obj); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !policy.IsOurs(obj) {
		r.stays(fmt.Sprintf("%s %s: it lacks the label %s=%s, so it is not Readygate's", kind, obj.GetName(), policy.PartOfLabel, policy.PartOf))
		return false, nil
	}
	uid := obj.GetUID()
	err := r.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	return err == nil, client.IgnoreNotFound(err)
}
