package live

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// gates holds the pods with a closed gate, and what their rows need. Other pods are not kept, which bounds the memory.
type gates struct {
	rules      map[string]*podv1alpha1.PodReadinessRule
	namespaces map[string]map[string]string // labels
	pods       map[string]*corev1.Pod       // by namespace and name
	book       *view.PodBook
	lines      map[string]view.Pod // rows of the pods that wait for a gate of a rule
}

func (f *Fleet) putPodRule(rule *podv1alpha1.PodReadinessRule) {
	before, known := f.gates.rules[rule.Name]
	f.gates.rules[rule.Name] = rule
	if !known || before.UID != rule.UID || !before.DeletionTimestamp.Equal(rule.DeletionTimestamp) || !reflect.DeepEqual(before.Spec, rule.Spec) {
		f.rereadGates()
	}
}

func (f *Fleet) putNamespace(namespace *corev1.Namespace) {
	before, seen := f.gates.namespaces[namespace.Name]
	f.gates.namespaces[namespace.Name] = known(namespace.Labels)
	if !seen || !maps.Equal(before, namespace.Labels) {
		f.reevaluate(namespace.Name)
	}
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// rereadGates compiles the PodReadinessRules again and evaluates every pod.
func (f *Fleet) rereadGates() {
	if f.gates == nil || f.filling {
		return
	}
	f.gates.book = view.NewPodBook(slices.Collect(maps.Values(f.gates.rules)))
	f.notify(func(c *changes) { c.podRules = true })
	f.reevaluate("")
}

// reevaluate evaluates the pods of a namespace again; all pods if it is empty.
func (f *Fleet) reevaluate(namespace string) {
	for key, pod := range f.gates.pods {
		if namespace == "" || pod.Namespace == namespace {
			f.evaluateGates(key, pod)
		}
	}
}

// evaluateGates keeps a pod with a closed gate and its row, and drops a pod without one.
func (f *Fleet) evaluateGates(key string, pod *corev1.Pod) {
	switch {
	case f.gates == nil:
		return
	case !closed(pod):
		f.forgetGates(key)
		return
	}
	f.gates.pods[key] = pod
	if f.filling {
		return
	}
	row := f.gates.book.Pod(pod, view.Place{Namespace: f.gates.namespaces[pod.Namespace]}, f.now())
	if row.State != view.PodWaiting {
		f.dropLine(key)
		return
	}
	if before, there := f.gates.lines[key]; there && reflect.DeepEqual(before, row) {
		return
	}
	f.gates.lines[key] = row
	f.notify(func(c *changes) { c.gated[key] = struct{}{} })
}

func (f *Fleet) forgetGates(key string) {
	if f.gates == nil {
		return
	}
	delete(f.gates.pods, key)
	f.dropLine(key)
}

func (f *Fleet) dropLine(key string) {
	if _, there := f.gates.lines[key]; there {
		delete(f.gates.lines, key)
		f.notify(func(c *changes) { c.gated[key] = struct{}{} })
	}
}

// takeGates adds the changes of pods to a delta.
func (f *Fleet) takeGates(taken *changes, delta *Delta) {
	if f.gates == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(taken.gated)) {
		if row, waits := f.gates.lines[key]; waits {
			delta.Gated = append(delta.Gated, row)
		} else {
			delta.Ungated = append(delta.Ungated, key)
		}
	}
	if taken.podRules {
		delta.PodRules = new(len(f.gates.rules))
	}
}

// PodExplanation returns the explanation of a pod with a closed gate from the fleet's objects, without events, writers
// and agent.
func (f *Fleet) PodExplanation(_ context.Context, namespace, name string) (view.PodExplanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates != nil {
		if pod, there := f.gates.pods[namespace+"/"+name]; there {
			place := view.Place{Namespace: f.gates.namespaces[namespace], Node: f.objects[pod.Spec.NodeName]}
			return f.gates.book.Explanation(pod, place, nil, f.unseen, f.now()), nil
		}
	}
	return view.PodExplanation{}, fmt.Errorf("no pod %s/%s waits: %w", namespace, name, apierrors.NewNotFound(corev1.Resource("pods"), name))
}

// slim returns a pod with the fields that decisions about its gates need. It is a new object that keeps no reference to
// the original.
func slim(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, ReadinessGates: pod.Spec.ReadinessGates},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs},
	}
	for _, key := range []string{podv1alpha1.GatesAnnotation, podv1alpha1.LatchAnnotation, corev1.MirrorPodAnnotationKey} {
		if value, has := pod.Annotations[key]; has {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	if podrule.HasLatch(pod) {
		kept.Spec.InitContainers = []corev1.Container{{Name: podv1alpha1.LatchName}}
	}
	for i := range pod.Status.InitContainerStatuses {
		if is := &pod.Status.InitContainerStatuses[i]; is.Name == podv1alpha1.LatchName {
			kept.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: is.Name, State: is.State}}
		}
	}
	return kept
}

// closed reports whether a gate of Readygate on the pod is closed, and the pod still runs or starts.
func closed(pod *corev1.Pod) bool {
	return !podrule.Over(pod) && slices.ContainsFunc(podrule.Ours(pod), func(gate string) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return string(c.Type) == gate && c.Status == corev1.ConditionTrue
		})
	})
}
