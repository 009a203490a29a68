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

// podPatience is how long pods may take to end. One on a node that is gone never does: then
// the manager's lease, which it cannot renew, decides.
const podPatience = time.Minute

// stopWriters stops the manager, the reporters and the agents, and waits until their pods have
// ended.
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

// selectorOf is the selector of labels that were validated; nil if there are none.
func selectorOf(text string) labels.Selector {
	if text == "" {
		return nil
	}
	selector, _ := labels.Parse(text)
	return selector
}

// list lists what the selector matches in the namespace; nothing if there is none. The API
// server takes an empty selector for everything.
func (r *run) list(ctx context.Context, list client.ObjectList, selector labels.Selector) error {
	if selector == nil || selector.String() == "" {
		return nil
	}
	return r.client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector})
}

// stopManager scales the Deployment to 0, and says which pods are its; nil if there is none.
func (r *run) stopManager(ctx context.Context) (labels.Selector, error) {
	deployment := &appsv1.Deployment{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Deployment}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("stopping the manager: %w", err)
	}
	if err != nil {
		log.Info("Manager stopped: there is no Deployment", "namespace", r.Namespace, "name", r.Deployment)
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

// deleteDaemonSets deletes the DaemonSets; their pods are deleted along with them.
func (r *run) deleteDaemonSets(ctx context.Context, what string, selector labels.Selector) error {
	var list appsv1.DaemonSetList
	if err := r.list(ctx, &list, selector); err != nil {
		return fmt.Errorf("looking for %s: %w", what, err)
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

// awaitPods waits until the pods have ended, for podPatience at most.
func (r *run) awaitPods(ctx context.Context, selectors ...labels.Selector) error {
	for end := time.Now().Add(podPatience); ; {
		running, err := r.pods(ctx, selectors)
		if err != nil {
			return err
		}
		if len(running) == 0 {
			log.Info("Pods of manager, reporters and agents have ended")
			return nil
		}
		if time.Now().After(end) || !sleep(ctx, time.Second) {
			log.Info("Going on without the end of some pods; is their node unreachable?", "pods", running)
			r.stays("pods that did not end within " + podPatience.String() + " (is their node unreachable?): " + strings.Join(running, ", "))
			return nil
		}
	}
}

// pods are those that may still run. Only pods of a Deployment or DaemonSet count: that of the
// cleanup itself may carry the same labels.
func (r *run) pods(ctx context.Context, selectors []labels.Selector) ([]string, error) {
	var running []string
	for _, selector := range selectors {
		var list corev1.PodList
		if err := r.list(ctx, &list, selector); err != nil {
			return nil, fmt.Errorf("looking for pods: %w", err)
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
