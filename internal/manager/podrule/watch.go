package podrule

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
)

// leaseRest is how long the change of a lease rests before statuses follow: many agents report at
// about the same time.
const leaseRest = 300 * time.Millisecond

// cacheSyncTimeout is how long the controller waits for its caches: a role without the rights must not end the
// manager, which also has the rules for nodes.
const cacheSyncTimeout = 1000 * time.Hour

// Back-off of a rule whose write failed.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager starts a controller that looks at a rule when it changed, when an agent reports
// something else, or when the policy did; rounds over nodes without agents; and sweeps for deleted rules.
// Rounds and sweeps are runnables of their own: the manager waits for their writes when it stops, and no
// timeout of a reconcile ends them.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	r.sweeps, r.again = newSweeps(), make(chan event.GenericEvent, 1)
	r.Coverage.OnChange(r.lookAgain)
	r.Others.OnChange(r.lookAgain)
	err := builder.ControllerManagedBy(mgr).
		Named("podrule").
		For(&v1alpha1.PodReadinessRule{}).
		Watches(&coordinationv1.Lease{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.all(ctx, q) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
				if e.ObjectOld.GetAnnotations()[agents.ReportAnnotation] != e.ObjectNew.GetAnnotations()[agents.ReportAnnotation] {
					r.all(ctx, q)
				}
			},
			DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.all(ctx, q) },
		}).
		WatchesRawSource(source.Channel(r.again, handler.Funcs{
			GenericFunc: func(ctx context.Context, _ event.GenericEvent, q queue) { r.all(ctx, q) },
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 4,
			CacheSyncTimeout:        cacheSyncTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
	return errors.Join(err, mgr.Add(manager.RunnableFunc(r.rounds)), mgr.Add(manager.RunnableFunc(r.sweepWhenAsked)))
}

// lookAgain asks for a look at all rules. It does not block: one request is enough.
func (r *Reconciler) lookAgain() {
	select {
	case r.again <- event.GenericEvent{}:
	default:
	}
}

// all asks for a look at all rules, in a moment.
func (r *Reconciler) all(ctx context.Context, q queue) {
	var list v1alpha1.PodReadinessRuleList
	if err := r.Client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "Rules for pods not looked at")
		return
	}
	for i := range list.Items {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}}, leaseRest)
	}
}

// rounds looks at pods on nodes without agents again and again.
func (r *Reconciler) rounds(ctx context.Context) error {
	for {
		if err := r.Round(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Pods on nodes without an agent: not all were looked at")
		}
		r.lookAgain()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roundInterval):
		}
	}
}
