package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// sight is a condition of a node with a status.
type sight struct {
	node, conditionType string
	status              corev1.ConditionStatus
}

// witness watches nodes, on a connection of its own, and notes when it first saw what.
type witness struct {
	stop context.CancelFunc

	mu      sync.Mutex
	seen    map[sight]time.Time
	waiting map[sight]chan struct{}
}

func startWitness(ctx context.Context, api kubernetes.Interface) (*witness, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &witness{stop: stop, seen: map[sight]time.Time{}, waiting: map[sight]chan struct{}{}}
	informer := informers.NewSharedInformerFactory(api, 0).Core().V1().Nodes().Informer()
	err := informer.SetTransform(func(obj any) (any, error) {
		if node, ok := obj.(*corev1.Node); ok {
			node.Status.Images, node.ManagedFields = nil, nil
		}
		return obj, nil
	})
	if err != nil {
		return w, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.note(obj.(*corev1.Node), time.Now()) },
		UpdateFunc: func(_, obj any) { w.note(obj.(*corev1.Node), time.Now()) },
	})
	if err != nil {
		return w, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return w, errors.New("watching nodes: interrupted")
	}
	return w, nil
}

func (w *witness) note(node *corev1.Node, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range node.Status.Conditions {
		s := sight{node.Name, string(node.Status.Conditions[i].Type), node.Status.Conditions[i].Status}
		if _, before := w.seen[s]; before {
			continue
		}
		w.seen[s] = now
		if waiting, found := w.waiting[s]; found {
			close(waiting)
			delete(w.waiting, s)
		}
	}
}

// await returns when the sight was first seen.
func (w *witness) await(ctx context.Context, s sight) (time.Time, error) {
	w.mu.Lock()
	at, seen := w.seen[s]
	waiting, found := w.waiting[s]
	if !seen && !found {
		waiting = make(chan struct{})
		w.waiting[s] = waiting
	}
	w.mu.Unlock()
	if seen {
		return at, nil
	}
	select {
	case <-waiting:
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("waiting for %s=%s: %w", s.conditionType, s.status, context.Cause(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[s], nil
}
