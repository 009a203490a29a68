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

// leaseRest is the delay from a change of a lease to the reconcile of the rules: many agents report at about the same
// time.
const leaseRest = 300 * time.Millisecond

// cacheSyncTimeout is long: without the permissions for this controller, the controllers of nodes still run.
const cacheSyncTimeout = 1000 * time.Hour

// Backoff of a rule after a failed write.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager starts the controller, rounds over nodes without a live agent, and sweeps for deleted rules. The
// controller reconciles a rule after a change of the rule, of the report of an agent, or of the policy. Rounds and
// sweeps are separate runnables: the manager waits for their writes when it stops, and the timeout of a reconcile does
// not end them.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	r.sweeps, r.again = newSweeps(), make(chan event.GenericEvent, 1)
	r.Coverage.OnChange(r.requeueAll)
	r.Others.OnChange(r.requeueAll)
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

// requeueAll requeues all rules. It does not block: one pending request is enough.
func (r *Reconciler) requeueAll() {
	select {
	case r.again <- event.GenericEvent{}:
	default:
	}
}

// all requeues all rules after leaseRest.
func (r *Reconciler) all(ctx context.Context, q queue) {
	var list v1alpha1.PodReadinessRuleList
	if err := r.Client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "Listing PodReadinessRules failed; their statuses are not updated")
		return
	}
	for i := range list.Items {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}}, leaseRest)
	}
}

// rounds runs a round every roundInterval.
func (r *Reconciler) rounds(ctx context.Context) error {
	for {
		if err := r.Round(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Evaluating pods on nodes without a podgate agent failed")
		}
		r.requeueAll()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roundInterval):
		}
	}
}
