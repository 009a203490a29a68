package integration_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// witness records revisions of nodes and pods. They can be compared, because all are of one etcd. It watches through a
// separate API server that is not restarted: an API server that has just started cannot serve earlier events.
type witness struct {
	taint  string
	opened chan string // each node, when only the rule keeps pods away

	mu          sync.Mutex
	createdHeld int // nodes with the taint in their first revision
	open        map[string]bool
	released    map[string]uint64 // node → first revision with the condition and without the taint
	waiting     map[string]bool   // pods that the scheduler found no node for
	bound       map[string]binding
}

// replica starts one more API server on the same etcd, with these additional arguments, and returns an administrator's
// client of it.
func replica(t testing.TB, c *testenv.Cluster, args ...string) client.WithWatch {
	t.Helper()
	config, err := c.StartReplica(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	other, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

type binding struct {
	node     string
	revision uint64
}

func newWitness(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, nodes int) *witness {
	t.Helper()
	reader := replica(t, c)
	w := &witness{
		taint:  rule.Spec.Taint.Key,
		opened: make(chan string, nodes),
		open:   map[string]bool{}, released: map[string]uint64{},
		waiting: map[string]bool{}, bound: map[string]binding{},
	}
	watchAll(t, reader, &corev1.NodeList{}, w.see)
	watchAll(t, reader, &corev1.PodList{}, w.see)
	return w
}

// watchAll calls see for all events until the test ends. The test fails if an event may be missing.
func watchAll(t *testing.T, reader client.WithWatch, list client.ObjectList, see func(watch.Event)) {
	t.Helper()
	if err := reader.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	events, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return reader.Watch(ctx, list, &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				t.Errorf("the witness may have missed events: %v", apierrors.FromObject(event.Object))
			}
			see(event)
		}
	}()
}

func (w *witness) see(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch obj := event.Object.(type) {
	case *corev1.Node:
		w.seeNode(obj, event.Type == watch.Added)
	case *corev1.Pod:
		w.seePod(obj)
	}
}

func (w *witness) seeNode(node *corev1.Node, created bool) {
	tainted := testenv.HasTaint(node, w.taint)
	if created && tainted {
		w.createdHeld++
	}
	if !w.open[node.Name] && isTrue(node, corev1.NodeReady) && !testenv.HasTaint(node, corev1.TaintNodeNotReady) {
		w.open[node.Name] = true
		w.opened <- node.Name
	}
	if w.released[node.Name] == 0 && isTrue(node, testenv.Condition) && !tainted {
		w.released[node.Name] = revisionOf(node)
	}
}

func (w *witness) seePod(pod *corev1.Pod) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			w.waiting[pod.Name] = true
		}
	}
	if w.bound[pod.Name].node == "" && pod.Spec.NodeName != "" {
		w.bound[pod.Name] = binding{node: pod.Spec.NodeName, revision: revisionOf(pod)}
	}
}

// verdict returns the pods that were bound before their node was released.
func (w *witness) verdict() (early []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for pod, b := range w.bound {
		if released := w.released[b.node]; released == 0 || b.revision < released {
			early = append(early, fmt.Sprintf("%s, bound to %s at revision %d, released at %d", pod, b.node, b.revision, released))
		}
	}
	return early
}

// eventually waits until the recorded events satisfy the check.
func (w *witness) eventually(t *testing.T, what string, seen func(*witness) bool) {
	t.Helper()
	testenv.Eventually(t, what, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !seen(w) {
			return fmt.Errorf("%d nodes could take pods, %d were released%s; %d pods waited, %d are bound%s",
				len(w.open), len(w.released), missing(w.open, w.released), len(w.waiting), len(w.bound), missing(w.waiting, w.bound))
		}
		return nil
	})
}

// missing names the missing entries, if they are few.
func missing[V any](all map[string]bool, there map[string]V) string {
	const few = 5
	var names []string
	for name := range all {
		if _, ok := there[name]; !ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return fmt.Sprintf(" (all but %s)", strings.Join(names, ", "))
}

// isTrue reports whether this condition of the node is True.
func isTrue(node *corev1.Node, conditionType corev1.NodeConditionType) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == conditionType {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func revisionOf(obj client.Object) uint64 {
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err) // no API server on etcd does that
	}
	return revision
}
