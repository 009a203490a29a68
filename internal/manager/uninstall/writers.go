package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podTimeout is how long pods may take to terminate. A pod on a node that is gone never does: the manager's lease,
// which such a pod cannot renew, then decides.
const podTimeout = time.Minute

// stopWriters stops the manager, the reporters and the agents, and waits until their pods have terminated.
func (r *run) stopWriters(ctx context.Context) error {
	var managers labels.Selector
	failed := retry(ctx, func(ctx context.Context) (err error) {
		managers, err = r.stopManager(ctx)
		return err
	})
	reporters, agents := selectorOf(r.Reporters), selectorOf(r.Agents)
	failed = errors.Join(failed,
		retry(ctx, func(ctx context.Context) error { return r.deleteDaemonSets(ctx, "reporters", reporters) }),
		retry(ctx, func(ctx context.Context) error { return r.deleteDaemonSets(ctx, "agents", agents) }))
	if failed != nil {
		return failed
	}
	return retry(ctx, func(ctx context.Context) error { return r.awaitPods(ctx, managers, reporters, agents) })
}

// selectorOf parses a validated label selector; nil if it is empty.
func selectorOf(text string) labels.Selector {
	if text == "" {
		return nil
	}
	selector, _ := labels.Parse(text)
	return selector
}

// list lists the objects in the namespace that the selector matches; none if the selector is nil or empty. For the API
// server, an empty selector matches all objects.
func (r *run) list(ctx context.Context, list client.ObjectList, selector labels.Selector) error {
	if selector == nil || selector.String() == "" {
		return nil
	}
	return r.client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector})
}

// stopManager scales the Deployment to 0, and returns the selector of its pods; nil if it does not exist.
func (r *run) stopManager(ctx context.Context) (labels.Selector, error) {
	deployment := &appsv1.Deployment{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Deployment}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("stopping the manager: %w", err)
	}
	if err != nil {
		log.Info("No manager to stop: the Deployment does not exist", "namespace", r.Namespace, "name", r.Deployment)
		return nil, nil
	}
	replicas := ptr.Deref(deployment.Spec.Replicas, 1)
	if replicas > 0 {
		none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
		if err := r.client.SubResource("scale").Patch(ctx, deployment.DeepCopy(), none, client.WithSubResourceBody(&autoscalingv1.Scale{})); err != nil {
			return nil, fmt.Errorf("scaling the manager to 0: %w", err)
		}
		r.removed("replicas of the manager", int(replicas))
	}
	log.Info("Manager stopped", "namespace", r.Namespace, "name", r.Deployment, "replicasBefore", replicas)
	return metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
}

// deleteDaemonSets deletes the DaemonSets. The garbage collector deletes their pods.
func (r *run) deleteDaemonSets(ctx context.Context, what string, selector labels.Selector) error {
	var list appsv1.DaemonSetList
	if err := r.list(ctx, &list, selector); err != nil {
		return fmt.Errorf("listing DaemonSets of %s: %w", what, err)
	}
	for i := range list.Items {
		err := r.client.Delete(ctx, &list.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: DaemonSet %s: %w", what, list.Items[i].Name, err)
		}
		r.removed(what, 1)
	}
	log.Info("DaemonSets deleted", "of", what, "namespace", r.Namespace, "daemonSets", len(list.Items))
	return nil
}

// awaitPods waits until the pods have terminated, for at most podTimeout.
func (r *run) awaitPods(ctx context.Context, selectors ...labels.Selector) error {
	for end := time.Now().Add(podTimeout); ; {
		running, err := r.pods(ctx, selectors)
		if err != nil {
			return err
		}
		if len(running) == 0 {
			log.Info("Pods of the manager, the reporters and the agents have terminated")
			return nil
		}
		if time.Now().After(end) || !sleep(ctx, time.Second) {
			log.Info("Continuing although pods have not terminated; check whether their nodes are reachable", "pods", running, "timeout", podTimeout.String())
			r.stays("pods that did not terminate within " + podTimeout.String() + "; check whether their nodes are reachable: " + strings.Join(running, ", "))
			return nil
		}
	}
}

// pods returns the pods that may still run. Only pods of a Deployment or DaemonSet count: the pod of the cleanup itself
// may have the same labels.
func (r *run) pods(ctx context.Context, selectors []labels.Selector) ([]string, error) {
	var running []string
	for _, selector := range selectors {
		var list corev1.PodList
		if err := r.list(ctx, &list, selector); err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			owner := metav1.GetControllerOf(pod)
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "DaemonSet") && !ended {
				running = append(running, pod.Name)
			}
		}
	}
	return running, nil
}
