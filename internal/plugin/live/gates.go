package live

import (
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/view"
)

// gates are what a fleet knows of pods with a closed gate. Only those are kept: they are few, however
// many pods there are.
type gates struct {
	rules      map[string]*podv1alpha1.PodReadinessRule
	namespaces map[string]map[string]string // labels
	pods       map[string]*corev1.Pod       // by namespace and name
	book       *view.PodBook
	lines      map[string]view.Pod // of those that wait for a gate of a rule
}

func newGates() *gates {
	return &gates{
		rules: map[string]*podv1alpha1.PodReadinessRule{}, namespaces: map[string]map[string]string{},
		pods: map[string]*corev1.Pod{}, book: view.NewPodBook(nil), lines: map[string]view.Pod{},
	}
}

func (f *Fleet) putPodRule(rule *podv1alpha1.PodReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.gates.rules[rule.Name]
	f.gates.rules[rule.Name] = rule
	if !known || before.UID != rule.UID || !before.DeletionTimestamp.Equal(rule.DeletionTimestamp) || !reflect.DeepEqual(before.Spec, rule.Spec) {
		f.rereadGates()
	}
}

func (f *Fleet) dropPodRule(rule *podv1alpha1.PodReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gates.rules, rule.Name)
	f.rereadGates()
}

func (f *Fleet) putNamespace(namespace *corev1.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, seen := f.gates.namespaces[namespace.Name]
	f.gates.namespaces[namespace.Name] = known(namespace.Labels)
	if !seen || !maps.Equal(before, namespace.Labels) {
		f.lookAgain(namespace.Name)
	}
}

func (f *Fleet) dropNamespace(namespace *corev1.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gates.namespaces, namespace.Name)
	f.lookAgain(namespace.Name)
}

// putGated and dropGated are for fleets that follow no cluster.
func (f *Fleet) putGated(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookAtGates(podKey(pod), pod)
}

func (f *Fleet) dropGated(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetGates(podKey(pod))
}

// rereadGates reads the rules of pods again and looks at every pod with their eyes.
func (f *Fleet) rereadGates() {
	if f.gates == nil || f.filling {
		return
	}
	f.gates.book = view.NewPodBook(slices.Collect(maps.Values(f.gates.rules)))
	f.tell(func(c *changes) { c.podRules = true })
	f.lookAgain("")
}

// lookAgain looks at the pods of a namespace again, or at all if it is empty.
func (f *Fleet) lookAgain(namespace string) {
	for key, pod := range f.gates.pods {
		if namespace == "" || pod.Namespace == namespace {
			f.lookAtGates(key, pod)
		}
	}
}

// lookAtGates keeps a pod with a closed gate and its line, and forgets one without.
func (f *Fleet) lookAtGates(key string, pod *corev1.Pod) {
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
	f.tell(func(c *changes) { c.gated[key] = struct{}{} })
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
		f.tell(func(c *changes) { c.gated[key] = struct{}{} })
	}
}

// takeGates adds to a delta what changed of pods.
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
		rules := len(f.gates.rules)
		delta.PodRules = &rules
	}
}

// PodStory is the story of a pod that has a closed gate, as the fleet knows it: without events, writers
// and its agent.
func (f *Fleet) PodStory(namespace, name string, now time.Time) (view.PodStory, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gates == nil {
		return view.PodStory{}, false
	}
	pod, there := f.gates.pods[namespace+"/"+name]
	if !there {
		return view.PodStory{}, false
	}
	place := view.Place{Namespace: f.gates.namespaces[namespace], Node: f.objects[pod.Spec.NodeName]}
	return f.gates.book.Story(pod, place, nil, f.unseen, now), true
}
