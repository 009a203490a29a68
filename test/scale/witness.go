package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/readygate/readygate/internal/testenv"
)

// witness watches nodes on a connection of its own, and records when it received which condition and which taints.
type witness struct {
	stop context.CancelFunc
	// taints are the keys that the rules manage: all of them are on a held node.
	taints []string

	mu     sync.Mutex
	nodes  map[string]*sight
	wait   *wanted
	failed error
}

// sight is what was last received of a node.
type sight struct {
	status  corev1.ConditionStatus // of the condition that rules require; empty: none
	flipped time.Time              // when it changed
	held    bool
	changed time.Time // when it changed

	// untainted says that the node was first received without the taints.
	untainted bool
}

// wanted is a wait until nodes have the taints, or do not.
type wanted struct {
	held    bool
	missing map[string]bool
	last    time.Time
	done    chan struct{}
}

// startWitness begins to watch a world without nodes.
func startWitness(ctx context.Context, api kubernetes.Interface, taints []string) (*witness, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &witness{stop: stop, taints: taints, nodes: map[string]*sight{}}
	now, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		stop()
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	events, err := watchNodes(ctx, api, now.ResourceVersion)
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		for event := range events {
			w.see(event, time.Now())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = errors.New("the watch of nodes has ended")
	}()
	return w, nil
}

// watchNodes watches nodes from a version on. An API server that has much to do ends watches
// that do not keep up; this one then goes on where it was.
func watchNodes(ctx context.Context, api kubernetes.Interface, version string) (<-chan watch.Event, error) {
	retrying, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.CoreV1().Nodes().Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	return retrying.ResultChan(), nil
}

func (w *witness) see(event watch.Event, now time.Time) {
	node, ok := event.Object.(*corev1.Node)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(w.nodes, node.Name)
		return
	}
	held := !slices.ContainsFunc(w.taints, func(key string) bool { return !testenv.HasTaint(node, key) })
	seen := w.nodes[node.Name]
	if seen == nil {
		seen = &sight{held: held, changed: now, untainted: !held}
		w.nodes[node.Name] = seen
	}
	if status := required(node); status != seen.status {
		seen.status, seen.flipped = status, now
	}
	// With several rules a node may carry some of the taints for a moment: it is released
	// when the last of them is gone.
	if free := !held && !slices.ContainsFunc(w.taints, func(key string) bool { return testenv.HasTaint(node, key) }); held != seen.held && (held || free) {
		seen.held, seen.changed = held, now
	}
	w.wait.see(node.Name, seen)
}

// required is the status of the condition that the rules require.
func required(node *corev1.Node) corev1.ConditionStatus {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == testenv.Condition {
			return node.Status.Conditions[i].Status
		}
	}
	return ""
}

func (q *wanted) see(name string, seen *sight) {
	if q == nil || !q.missing[name] || seen.held != q.held {
		return
	}
	delete(q.missing, name)
	q.last = seen.changed
	if len(q.missing) == 0 {
		close(q.done)
	}
}

// expect begins a wait for these nodes, which all have to change.
func (w *witness) expect(names []string, held bool) *wanted {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &wanted{held: held, missing: map[string]bool{}, done: make(chan struct{})}
	for _, name := range names {
		if seen := w.nodes[name]; seen == nil || seen.held != held {
			q.missing[name] = true
		}
	}
	if len(q.missing) == 0 {
		close(q.done)
	}
	w.wait = q
	return q
}

// await returns when all nodes have changed.
func (w *witness) await(ctx context.Context, q *wanted) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		return errors.Join(fmt.Errorf("%d nodes did not change within %v", len(q.missing), changeTimeout), w.failed)
	}
}

// latencies are the times from the condition to the taint of these nodes.
func (w *witness) latencies(names []string) testenv.Distribution {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all testenv.Distribution
	for _, name := range names {
		if seen := w.nodes[name]; seen != nil && !seen.changed.Before(seen.flipped) {
			all = append(all, seen.changed.Sub(seen.flipped))
		}
	}
	return all
}

// untainted counts the nodes that were first received without the taints.
func (w *witness) untainted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, seen := range w.nodes {
		if seen.untainted {
			count++
		}
	}
	return count
}
