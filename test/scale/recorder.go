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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/readygate/readygate/internal/testenv"
)

// recorder watches nodes on its own connection, and records when it receives the condition and the taints of each node.
type recorder struct {
	stop context.CancelFunc
	// taints are the keys that the rules manage: all of them are on a held node.
	taints []string

	mu     sync.Mutex
	nodes  map[string]*record
	failed error
}

// record is the last received state of a node.
type record struct {
	status  corev1.ConditionStatus // of the condition that rules require; empty: none
	flipped time.Time              // when status changed
	held    bool
	changed time.Time // when held changed

	// untainted is true if the first received state of the node lacked the taints.
	untainted bool
}

// startRecorder starts the watch, in a world without nodes.
func startRecorder(ctx context.Context, api kubernetes.Interface, taints []string) (*recorder, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &recorder{stop: stop, taints: taints, nodes: map[string]*record{}}
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
		w.failed = errors.New("the watch of nodes ended")
	}()
	return w, nil
}

// watchNodes watches nodes from a resourceVersion on. A busy API server closes slow watches; this watch then resumes
// at the last received version.
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

func (w *recorder) see(event watch.Event, now time.Time) {
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
		seen = &record{held: held, changed: now, untainted: !held}
		w.nodes[node.Name] = seen
	}
	if status := required(node); status != seen.status {
		seen.status, seen.flipped = status, now
	}
	// With several rules a node can have only some of the taints for a moment. It counts as released when the last taint
	// is removed.
	if free := !held && !slices.ContainsFunc(w.taints, func(key string) bool { return testenv.HasTaint(node, key) }); held != seen.held && (held || free) {
		seen.held, seen.changed = held, now
	}
}

// required returns the status of the condition that the rules require.
func required(node *corev1.Node) corev1.ConditionStatus {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == testenv.Condition {
			return node.Status.Conditions[i].Status
		}
	}
	return ""
}

// await waits until all of these nodes have all taints (held) or none, and returns the time of the last change. It polls,
// but the returned time is that of the watch.
func (w *recorder) await(ctx context.Context, names []string, held bool) (last time.Time, err error) {
	var missing int
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, changeTimeout, true, func(context.Context) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		last, missing = time.Time{}, 0
		for _, name := range names {
			if seen := w.nodes[name]; seen == nil || seen.held != held {
				missing++
			} else if seen.changed.After(last) {
				last = seen.changed
			}
		}
		return missing == 0, w.failed
	})
	if err != nil {
		return last, fmt.Errorf("%d nodes did not change: %w", missing, err)
	}
	return last, nil
}

// latencies returns the times from the condition to the taint of these nodes.
func (w *recorder) latencies(names []string) testenv.Distribution {
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
func (w *recorder) untainted() int {
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
