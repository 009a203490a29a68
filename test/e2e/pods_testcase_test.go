package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Functions for scenarios with pods.

const (
	// programmed is the condition by which the policy engine of the scenarios reports ready.
	programmed = "policy.example.com/programmed"

	agents = "daemonset/readygate-podgate"
)

// installPods installs the chart with agents that open gates.
func installPods(t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	install(t, l, append([]string{"--set", "podgate.enabled=true"}, args...)...)
}

// attended waits until a manager leads and every node has an agent.
func attended(t *testing.T, l *lab.Lab) {
	t.Helper()
	managed(t, l)
	l.Kubectl.Run(t, "rollout", "status", agents, "-n", namespace, "--timeout=90s")
}

// podRule returns a rule for the pods of these apps, with these additional fields.
func podRule(name, fields string, apps ...string) string {
	return fmt.Sprintf(`apiVersion: readygate.dev/v1alpha1
kind: PodReadinessRule
metadata: {name: %s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
  podSelector: {matchExpressions: [{key: app, operator: In, values: [%s]}]}
%s`, name, strings.Join(apps, ", "), fields)
}

// applyPodRule applies such a rule, and waits until it is enforced.
func applyPodRule(t *testing.T, l *lab.Lab, name, fields string, apps ...string) {
	t.Helper()
	l.Apply(t, podRule(name, fields, apps...))
	eventuallyPodRule(t, l, name, "enforced", enforces(metav1.ConditionTrue, podv1alpha1.ReasonEnforced))
}

// applyExampleRule follows the README of the examples: it applies a rule for pod networks, and labels a
// namespace. The rule is deleted when the test ends.
func applyExampleRule(t *testing.T, l *lab.Lab, dir, rule string) {
	t.Helper()
	l.Kubectl.Run(t, "label", "namespace", metav1.NamespaceDefault, "network-gate=on")
	l.Kubectl.Run(t, "apply", "-f", example(dir))
	t.Cleanup(func() {
		if _, err := l.Kubectl.Try(context.Background(), "delete", "-f", example(dir), "--timeout=2m"); err != nil {
			t.Error(err)
		}
	})
	eventuallyPodRule(t, l, rule, "enforced", enforces(metav1.ConditionTrue, podv1alpha1.ReasonEnforced))
}

// enforces reports whether condition Enforced of the rule's current generation has this status and reason.
func enforces(status metav1.ConditionStatus, reason string) func(*podv1alpha1.PodReadinessRule) bool {
	return func(rule *podv1alpha1.PodReadinessRule) bool {
		is := meta.FindStatusCondition(rule.Status.Conditions, podv1alpha1.ConditionEnforced)
		return is != nil && is.Status == status && is.Reason == reason && is.ObservedGeneration == rule.Generation
	}
}

func eventuallyPodRule(t *testing.T, l *lab.Lab, name, what string, check func(*podv1alpha1.PodReadinessRule) bool) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("rule %s: %s", name, what), func(ctx context.Context) error {
		var rule podv1alpha1.PodReadinessRule
		if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, &rule); err != nil {
			return err
		}
		if !check(&rule) {
			return fmt.Errorf("status %+v", rule.Status)
		}
		return nil
	})
}

// eventuallyPod waits until the pod satisfies the check, and returns it.
func eventuallyPod(t *testing.T, l *lab.Lab, name, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	testenv.Eventually(t, fmt.Sprintf("pod %s: %s", name, what), func(ctx context.Context) error {
		pod = corev1.Pod{}
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &pod); err != nil {
			return err
		}
		if !check(&pod) {
			return fmt.Errorf("phase %s, conditions %+v, annotations %v", pod.Status.Phase, pod.Status.Conditions, pod.Annotations)
		}
		return nil
	})
	return &pod
}

// idle returns a pod that does nothing, and is Ready as soon as it runs.
func idle(name, app string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": app}},
		Spec:       idleSpec(),
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func idleSpec() corev1.PodSpec {
	return corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers:                    []corev1.Container{{Name: "idle", Image: "lab/pause:1"}},
	}
}

// on returns a selector of one node.
func on(node string) map[string]string { return map[string]string{corev1.LabelHostname: node} }

// onNode binds a pod to one node.
func onNode(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = on(node) }
}

// conditionOf returns the pod's condition of a type; an empty one if it has none.
func conditionOf[T ~string](pod *corev1.Pod, kind T) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if string(c.Type) == string(kind) {
			return c
		}
	}
	return corev1.PodCondition{}
}

func gateOf(pod *corev1.Pod) corev1.PodCondition { return conditionOf(pod, podv1alpha1.DefaultGate) }

// isOpen reports whether the gate is open with this reason.
func isOpen(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return isReady(pod) && gateOf(pod).Status == corev1.ConditionTrue && gateOf(pod).Reason == reason
	}
}

// waitsFor reports whether the gate is closed, its message names the one component and not the other, and all
// containers are ready.
func waitsFor(this, not string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		is := gateOf(pod)
		return !isReady(pod) && conditionOf(pod, corev1.ContainersReady).Status == corev1.ConditionTrue &&
			is.Status == corev1.ConditionFalse && is.Reason == podv1alpha1.ReasonWaiting && strings.Contains(is.Message, this) && !strings.Contains(is.Message, not)
	}
}

// sandboxOf returns the time at which the pod got its sandbox; zero if it has none.
func sandboxOf(pod *corev1.Pod) time.Time {
	if is := conditionOf(pod, corev1.PodReadyToStartContainers); is.Status == corev1.ConditionTrue {
		return is.LastTransitionTime.Time
	}
	return time.Time{}
}

// setPodCondition reports like a component: one patch of the pod's status.
func setPodCondition(ctx context.Context, l *lab.Lab, pod *corev1.Pod, kind string, at time.Time) error {
	base := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	changed := base.DeepCopy()
	changed.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodConditionType(kind), Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at), Reason: "Test",
	}}
	return l.Client.Status().Patch(ctx, changed, client.StrategicMergeFrom(base))
}

// program sets the policy engine's condition of the pod to True, with this time.
func program(t *testing.T, l *lab.Lab, pod *corev1.Pod, at time.Time) {
	t.Helper()
	if err := setPodCondition(t.Context(), l, pod, programmed, at); err != nil {
		t.Fatal(err)
	}
}

// podHistory has every state of the pods of some apps that a watch returned, in order.
type podHistory struct {
	mu     sync.Mutex
	states []*corev1.Pod
}

// watchPods records the states of pods of these apps until the test ends.
func watchPods(t *testing.T, l *lab.Lab, apps ...string) *podHistory {
	t.Helper()
	h := &podHistory{}
	events, err := l.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && slices.Contains(apps, pod.Labels["app"]) {
				h.mu.Lock()
				h.states = append(h.states, pod)
				h.mu.Unlock()
			}
		}
	}()
	t.Cleanup(events.Stop)
	return h
}

// all returns the states of all pods so far.
func (h *podHistory) all() []*corev1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states)
}

// of returns the states of one pod so far.
func (h *podHistory) of(uid types.UID) []*corev1.Pod {
	return slices.DeleteFunc(h.all(), func(pod *corev1.Pod) bool { return pod.UID != uid })
}

// stayedOpen fails the test if the gate of a pod was closed in any state.
func (h *podHistory) stayedOpen(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		states := h.of(pod.UID)
		if len(states) == 0 {
			t.Errorf("%s was never seen", pod.Name)
		}
		for _, state := range states {
			if is := gateOf(state); is.Status != corev1.ConditionTrue {
				t.Errorf("the gate of %s did not stay open: %+v", pod.Name, is)
				break
			}
		}
	}
}

// pids returns the processes of a pod that run this command.
func pids(n *lab.Node, uid types.UID, command string) []int {
	var found []int
	for _, class := range []string{"", "*"} {
		files, _ := filepath.Glob(n.Cgroup("memory", filepath.Join("kubepods", class, "pod"+string(uid), "*", "cgroup.procs")))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // it has just ended
			}
			for word := range strings.FieldsSeq(string(data)) {
				pid, err := strconv.Atoi(word)
				line, _ := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
				if err == nil && strings.Contains(string(line), command) {
					found = append(found, pid)
				}
			}
		}
	}
	return found
}

// readyAfter creates an object and returns how long it takes until so many pods of the app are
// ready. Each pod is passed to created as soon as it is there, if that is not nil.
func readyAfter(t *testing.T, l *lab.Lab, obj client.Object, app string, pods int, created func(*corev1.Pod)) time.Duration {
	t.Helper()
	events := podEvents(t, l, app)
	defer events.Stop()
	patience := time.NewTimer(10 * time.Minute)
	defer patience.Stop()
	started := time.Now()
	l.Create(t, obj)
	for ready := map[types.UID]bool{}; len(ready) < pods; {
		select {
		case event, more := <-events.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !more || !ok {
				t.Fatalf("the watch ended: %+v", event)
			}
			if event.Type == watch.Added && created != nil {
				created(pod)
			}
			if event.Type != watch.Deleted && isReady(pod) {
				ready[pod.UID] = true
			}
		case <-patience.C:
			t.Fatalf("%d of %d pods of %s are ready", len(ready), pods, app)
		}
	}
	return time.Since(started)
}

// podEvents returns the changes of the pods of an app from now on. A busy API server ends watches: the watch is
// resumed.
func podEvents(t *testing.T, l *lab.Lab, app string) watch.Interface {
	t.Helper()
	of := []client.ListOption{client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}}
	var list corev1.PodList
	if err := l.Client.List(t.Context(), &list, of...); err != nil {
		t.Fatal(err)
	}
	events, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, from metav1.ListOptions) (watch.Interface, error) {
			return l.Client.Watch(ctx, &corev1.PodList{}, append(of, &client.ListOptions{Raw: &from})...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// median returns the median.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
