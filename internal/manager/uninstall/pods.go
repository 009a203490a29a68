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

// removeGates leaves no pod that waits for somebody who is gone, and lets the rules for pods go.
// Their finalizers stay while pods wait: with them everybody can see that something is left.
func (r *run) removeGates(ctx context.Context) error {
	var failed error
	if r.Rules == DeleteRules {
		failed = retry(ctx, func(ctx context.Context) error { return r.deleteRules(ctx, podRules()) })
	}
	if err := r.openPods(ctx); err != nil {
		return errors.Join(failed, err, errors.New("rules for pods: left as they are, because pods still wait for them"))
	}
	return errors.Join(failed, r.releaseRules(ctx, podRules()), retry(ctx, r.deleteLeases))
}

var allPods = objectKind{
	name:    "pod",
	newList: func() client.ObjectList { return &corev1.PodList{} },
	stop:    "stop the agent that enforces the rules for pods, such as one whose DaemonSet does not have the labels of --agents",
}

// openPods opens what rules have closed.
func (r *run) openPods(ctx context.Context) error {
	return r.untilClean(ctx, allPods, "Pods opened", func(context.Context) (visit, error) {
		return func(ctx context.Context, obj client.Object) (bool, error) { return r.open(ctx, obj.(*corev1.Pod)) }, nil
	})
}

// open opens the gates of a pod that rules asked for, as it is decided where there are no rules. The
// latch is opened for good: also that of a pod whose gates are open, because it would wait again
// after a boot of the node. A pod that is open and has no latch needs nothing.
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
	case podrule.Full(err): // its gates are open; who filled it keeps nobody from going
		log.Info("No room for the key of a latch", "pod", pod.Namespace+"/"+pod.Name)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("opening its gates: %w", err)
	}
	r.removed("closed gates of pods", len(decided.Conditions))
	if podrule.HasLatch(pod) {
		r.removed("latches of pods", 1)
	}
	return true, nil
}

// deleteLeases deletes the leases by which agents said that they are alive.
func (r *run) deleteLeases(ctx context.Context) error {
	var list coordinationv1.LeaseList
	if err := r.list(ctx, &list, selectorOf(r.Agents)); err != nil {
		return fmt.Errorf("looking for leases of agents: %w", err)
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
