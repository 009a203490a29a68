package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// History has every state of every node that a watch returned, in order.
type History struct {
	mu     sync.Mutex
	states []State
}

// State is a node at a point in time.
type State struct {
	Type watch.EventType
	Seen time.Time
	Node *corev1.Node
}

// Watch records the states of nodes from now until the test ends.
func (l *Lab) Watch(t *testing.T) *History {
	t.Helper()
	h := &History{}
	var list corev1.NodeList
	if err := l.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		h.add(watch.Added, &list.Items[i])
	}
	events, err := l.Client.Watch(t.Context(), &corev1.NodeList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				h.add(event.Type, node)
			}
		}
	}()
	t.Cleanup(events.Stop)
	return h
}

func (h *History) add(kind watch.EventType, node *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, State{Type: kind, Seen: time.Now(), Node: node})
}

// All returns the states of all nodes so far.
func (h *History) All() []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states)
}

// Of returns the states of one node so far.
func (h *History) Of(node string) []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []State
	for _, s := range h.states {
		if s.Node.Name == node && s.Type != watch.Deleted {
			states = append(states, s)
		}
	}
	return states
}

// Always fails the test unless every state of the node so far satisfies the check.
func (h *History) Always(t *testing.T, node, what string, check func(*corev1.Node) bool) {
	t.Helper()
	states := h.Of(node)
	if len(states) == 0 {
		t.Errorf("%s was never seen", node)
	}
	for _, s := range states {
		if !check(s.Node) {
			t.Errorf("%s was not always %s: at %s %s", node, what, s.Seen.Format(time.TimeOnly), Describe(s.Node))
			return
		}
	}
}

// Describe returns one line with the taints of a node and its conditions that are True.
func Describe(node *corev1.Node) string {
	var taints, conditions []string
	for _, taint := range node.Spec.Taints {
		taints = append(taints, taint.ToString())
	}
	for _, c := range node.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			conditions = append(conditions, string(c.Type))
		}
	}
	return fmt.Sprintf("taints [%s], True [%s]", strings.Join(taints, " "), strings.Join(conditions, " "))
}

// EventuallyNodes waits until the check holds for each of the nodes.
func (l *Lab) EventuallyNodes(t *testing.T, what string, check func(*corev1.Node) bool, names ...string) {
	t.Helper()
	for _, name := range names {
		l.EventuallyNode(t, name, what, check)
	}
}

// Get reads the object, which must exist.
func (l *Lab) Get(t *testing.T, obj client.Object, namespace, name string) {
	t.Helper()
	if err := l.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
}
