package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Back-off of a node whose write failed for a passing reason.
const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager starts a controller that looks at a node when something changed on it
// that a rule names, and at every node when the rules changed or the list of rule taints was read late.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).
		Named("node").
		Watches(&corev1.Node{}, handler.Funcs{CreateFunc: r.onCreate, UpdateFunc: r.onUpdate, DeleteFunc: r.onDelete}).
		Watches(&v1alpha1.NodeReadinessRule{}, handler.Funcs{
			CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { r.all(q) },
			UpdateFunc: r.onRuleUpdate,
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
				r.Metrics.Forget(e.Object.GetName())
				r.all(q)
			},
		}).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			r.Owners.OnChange(func() { r.all(q) }) // records were not believed while the list could not be read
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
}

func (r *Reconciler) onCreate(ctx context.Context, e event.CreateEvent, q queue) {
	q.Add(request(e.Object.GetName()))
	if book, err := r.Rules.Current(ctx); err == nil && !e.IsInInitialList {
		r.tellAdmitted(book, nil, noderule.NodeOf(e.Object.(*corev1.Node)))
		add(q, r.Quota.Observe(book, e.Object.(*corev1.Node)))
	}
}

// add asks for a look at the nodes.
func add(q queue, nodes []string) {
	for _, node := range nodes {
		q.Add(request(node))
	}
}

// tellAdmitted tells of taints that the API server put on by itself. It is done here because
// a reconcile sees a state and no change; what happened while nobody watched is not told of.
func (r *Reconciler) tellAdmitted(book *noderule.Rulebook, before, after *noderule.Node) {
	changes := book.Admitted(before, after)
	r.record(after, changes)
	for _, change := range changes {
		r.Metrics.operations.WithLabelValues(change.Rule, "add").Inc()
	}
}

// onUpdate drops what no rule names: heartbeats first of all.
func (r *Reconciler) onUpdate(ctx context.Context, e event.UpdateEvent, q queue) {
	before, after := noderule.NodeOf(e.ObjectOld.(*corev1.Node)), noderule.NodeOf(e.ObjectNew.(*corev1.Node))
	if book, err := r.Rules.Current(ctx); err == nil {
		if !book.Concerns(before, after) {
			return
		}
		r.tellAdmitted(book, before, after)
		add(q, r.Quota.Observe(book, e.ObjectNew.(*corev1.Node)))
	}
	q.Add(request(after.Name))
}

func (r *Reconciler) onDelete(_ context.Context, e event.DeleteEvent, q queue) {
	r.Failures.Clear(e.Object.GetName())
	r.Metrics.unlistedNodes.Add(r.unlisted.forget(e.Object.GetName()))
	add(q, r.Quota.Forget(e.Object.(*corev1.Node)))
}

// onRuleUpdate ignores what decisions do not depend on: status above all, which is written
// as a consequence of looking at nodes.
func (r *Reconciler) onRuleUpdate(_ context.Context, e event.UpdateEvent, q queue) {
	before, after := e.ObjectOld.(*v1alpha1.NodeReadinessRule), e.ObjectNew.(*v1alpha1.NodeReadinessRule)
	if !noderule.SameRule(before, after) {
		r.all(q)
	}
}

// all asks for a look at every node, after those that have changed themselves: a sweep over
// the fleet delays nobody. A node that changes while it waits is moved up by the queue. Nodes
// of the first list wait like this too, by handler.Funcs.
func (r *Reconciler) all(q queue) {
	var requests []reconcile.Request
	for node := range r.Nodes.All() {
		requests = append(requests, request(node.Name))
	}
	// controller-runtime hands out no other kind of queue; it wraps one that lacks priorities.
	q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
