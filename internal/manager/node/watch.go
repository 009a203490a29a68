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

// Backoff of a node after a transient failure.
const (
	retryFirst = 50 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager starts the controller. It reconciles a node after a change that concerns a rule, and all nodes after a
// change of the rules or a late first read of the list of rule taints.
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
			r.Owners.OnChange(func() { r.all(q) }) // without the list, records are ignored
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
		r.recordAdmitted(book, nil, noderule.NodeOf(e.Object.(*corev1.Node)))
		add(q, r.Quota.Observe(book, e.Object.(*corev1.Node)))
	}
}

// add requeues the nodes.
func add(q queue, nodes []string) {
	for _, node := range nodes {
		q.Add(request(node))
	}
}

// recordAdmitted emits events for taints that the admission policy added. Only a watch event shows such a change, so
// changes while no manager watched have no event.
func (r *Reconciler) recordAdmitted(book *noderule.Rulebook, before, after *noderule.Node) {
	changes := book.Admitted(before, after)
	r.record(after, changes)
	for _, change := range changes {
		r.Metrics.operations.WithLabelValues(change.Rule, "add").Inc()
	}
}

// onUpdate ignores changes that concern no rule, such as heartbeats.
func (r *Reconciler) onUpdate(ctx context.Context, e event.UpdateEvent, q queue) {
	before, after := noderule.NodeOf(e.ObjectOld.(*corev1.Node)), noderule.NodeOf(e.ObjectNew.(*corev1.Node))
	if book, err := r.Rules.Current(ctx); err == nil {
		if !book.Concerns(before, after) {
			return
		}
		r.recordAdmitted(book, before, after)
		add(q, r.Quota.Observe(book, e.ObjectNew.(*corev1.Node)))
	}
	q.Add(request(after.Name))
}

func (r *Reconciler) onDelete(_ context.Context, e event.DeleteEvent, q queue) {
	r.Failures.Clear(e.Object.GetName())
	r.Metrics.unlistedNodes.Add(r.unlisted.forget(e.Object.GetName()))
	add(q, r.Quota.Forget(e.Object.(*corev1.Node)))
}

// onRuleUpdate ignores changes that decisions do not depend on, such as the status of a rule.
func (r *Reconciler) onRuleUpdate(_ context.Context, e event.UpdateEvent, q queue) {
	before, after := e.ObjectOld.(*v1alpha1.NodeReadinessRule), e.ObjectNew.(*v1alpha1.NodeReadinessRule)
	if !noderule.SameRule(before, after) {
		r.all(q)
	}
}

// all requeues all nodes with low priority, so that nodes that changed are reconciled first. The queue raises the
// priority of a node that changes meanwhile. handler.Funcs gives nodes of the initial list the same priority.
func (r *Reconciler) all(q queue) {
	var requests []reconcile.Request
	for node := range r.Nodes.All() {
		requests = append(requests, request(node.Name))
	}
	// controller-runtime passes no other kind of queue; it wraps one without priorities.
	q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
