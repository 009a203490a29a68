package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/quota"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// A requeue of all nodes does not delay a node that has changed, whether that node is in the queue or not.
func TestChangedNodesAreReconciledBeforeASweep(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var nodes []runtime.Object
	for i := range 100 {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%02d", i)}})
	}
	c, store := fake.NewClientBuilder().WithScheme(scheme).Build(), cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, node := range nodes {
		if err := store.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	everyNode := nodecache.New(store)
	r := &Reconciler{Client: c, Nodes: everyNode, Rules: rulecache.New(c), Quota: quota.New(&Reader{Nodes: everyNode}, leadership.NewFence(clock.RealClock{}, time.Minute, time.Minute), clock.RealClock{})}
	created := handler.Funcs{CreateFunc: r.onCreate}
	for name, sweep := range map[string]func(context.Context, queue){
		"a rule changed": func(_ context.Context, q queue) { r.all(q) },
		"the first list": func(ctx context.Context, q queue) {
			for _, node := range nodes {
				created.Create(ctx, event.CreateEvent{Object: node.(*corev1.Node), IsInInitialList: true}, q)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := priorityqueue.New[reconcile.Request](t.Name())
			defer q.ShutDown()
			sweep(t.Context(), q)
			q.Add(request("young"))
			created.Create(t.Context(), event.CreateEvent{Object: nodes[77].(*corev1.Node)}, q)
			for _, want := range []string{"young", "node-77"} {
				if got, _ := q.Get(); got != request(want) {
					t.Errorf("%s is reconciled, want %s", got.Name, want)
				}
			}
			if left := q.Len(); left != 99 {
				t.Errorf("%d nodes are left in the queue, want 99", left)
			}
		})
	}
}
