package uninstall

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/podrule"
)

// removeGates opens the gates of all pods, and then removes the finalizers of PodReadinessRules, or deletes the rules.
// The finalizers stay while pods wait: they show that the cleanup is incomplete.
func (r *run) removeGates(ctx context.Context) error {
	var failed error
	if r.Rules == DeleteRules {
		failed = retry(ctx, func(ctx context.Context) error { return r.deleteRules(ctx, podRules()) })
	}
	if err := r.openPods(ctx); err != nil {
		return errors.Join(failed, err, errors.New("PodReadinessRules: not changed, because pods still wait for their gates"))
	}
	return errors.Join(failed, r.releaseRules(ctx, podRules()), retry(ctx, r.deleteLeases))
}

var allPods = objectKind{
	name:    "pod",
	newList: func() client.ObjectList { return &corev1.PodList{} },
	stop:    "stop the podgate agent that enforces PodReadinessRules, e.g. one whose DaemonSet does not match --agents",
}

// openPods opens the gates and latches of all pods.
func (r *run) openPods(ctx context.Context) error {
	return r.untilClean(ctx, allPods, "Pods opened", func(context.Context) (visit, error) {
		return func(ctx context.Context, obj client.Object) (bool, error) { return r.open(ctx, obj.(*corev1.Pod)) }, nil
	})
}

// open opens the gates of a pod, with the decision for a cluster without rules. It opens the latch permanently, also if
// all gates are open: otherwise the latch would wait again after a boot of the node. A pod with open gates and without
// a latch needs no write.
func (r *run) open(ctx context.Context, pod *corev1.Pod) (bool, error) {
	decided := podrule.Decide(nil, &podrule.Subject{Pod: pod}, nil, time.Now()).Patch
	if decided == nil || len(decided.Conditions) == 0 && !podrule.HasLatch(pod) {
		return false, nil
	}
	err := decided.Send(pod.UID, func(patch []byte) error {
		target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		return r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch))
	})
	switch {
	case podrule.Missed(err):
		return false, nil
	case podrule.Full(err): // its gates are open; a full annotation must not block the cleanup
		log.Info("Latch not opened: the annotations of the pod have no room for its key", "pod", pod.Namespace+"/"+pod.Name)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("opening gates: %w", err)
	}
	r.removed("closed gates of pods", len(decided.Conditions))
	if podrule.HasLatch(pod) {
		r.removed("latches of pods", 1)
	}
	return true, nil
}

// deleteLeases deletes the leases of the agents.
func (r *run) deleteLeases(ctx context.Context) error {
	var list coordinationv1.LeaseList
	if err := r.list(ctx, &list, selectorOf(r.Agents)); err != nil {
		return fmt.Errorf("listing leases of agents: %w", err)
	}
	var failed failures
	for i := range list.Items {
		err := r.client.Delete(ctx, &list.Items[i])
		if err == nil {
			r.removed("leases of agents", 1)
		}
		failed.add(list.Items[i].Name, client.IgnoreNotFound(err))
	}
	log.Info("Leases of agents deleted", "namespace", r.Namespace, "labels", r.Agents, "leases", len(list.Items))
	return failed.err("leases")
}
