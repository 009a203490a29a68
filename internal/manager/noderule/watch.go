package noderule

import (
	"context"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager starts the controller. It reconciles a rule after a change of the rule, of a node that concerns it, of
// its rejected writes, of the policy readygate-taint-new-nodes, of the list of rule taints, and of the condition
// SoleController.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, concurrency int) error {
	return builder.ControllerManagedBy(mgr).
		Named("rule").
		Watches(&v1alpha1.NodeReadinessRule{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.all(ctx, q) },
			UpdateFunc: r.onUpdate,
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
				q.Add(request(e.Object.GetName()))
				q.Add(listRequest)
				r.all(ctx, q)
			},
		}).
		Watches(&corev1.Node{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.onNode(ctx, e.Object, q) },
			UpdateFunc: r.onNodeUpdate,
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.onNode(ctx, e.Object, q) },
		}).
		Watches(&appsv1.DaemonSet{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.all(ctx, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
				if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
					r.all(ctx, q)
				}
			},
			DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.all(ctx, q) },
		}).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			r.Failures.OnChange(func(rule string) { q.Add(request(rule)) })
			r.Coverage.OnChange(func() { r.all(ctx, q) })
			r.Others.OnChange(func() { r.all(ctx, q) })
			r.Owners.OnChange(func() { r.all(ctx, q) })
			q.Add(listRequest)
			return nil
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
}

// onUpdate requeues all rules after a change that decisions depend on: such a change can start or end conflicts. Any
// other change requeues only the rule itself, later: it may be an own write, or another client changed the status.
func (r *Reconciler) onUpdate(ctx context.Context, e event.UpdateEvent, q queue) {
	if !noderule.SameRule(e.ObjectOld.(*v1alpha1.NodeReadinessRule), e.ObjectNew.(*v1alpha1.NodeReadinessRule)) {
		r.all(ctx, q)
		return
	}
	q.AddAfter(request(e.ObjectNew.GetName()), statusInterval)
}

// all requeues all rules.
func (r *Reconciler) all(ctx context.Context, q queue) {
	r.each(ctx, func(rule *noderule.Rule) { q.Add(request(rule.Name)) })
}

// onNode requeues the rules that a created or deleted node concerns.
func (r *Reconciler) onNode(ctx context.Context, obj client.Object, q queue) {
	node := noderule.NodeOf(obj.(*corev1.Node))
	r.each(ctx, func(rule *noderule.Rule) {
		if rule.Selects(node) || noderule.Carries(rule, node) {
			q.AddAfter(request(rule.Name), nodeRest)
		}
	})
}

func (r *Reconciler) onNodeUpdate(ctx context.Context, e event.UpdateEvent, q queue) {
	before, after := noderule.NodeOf(e.ObjectOld.(*corev1.Node)), noderule.NodeOf(e.ObjectNew.(*corev1.Node))
	book, err := r.Rules.Current(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Reading rules from the cache failed")
		return
	}
	for _, rule := range book.Concerned(before, after) {
		q.AddAfter(request(rule.Name), nodeRest)
	}
}

func (r *Reconciler) each(ctx context.Context, do func(*noderule.Rule)) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Reading rules from the cache failed")
		return
	}
	for _, rule := range book.Rules() {
		do(rule)
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
