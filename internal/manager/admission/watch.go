package admission

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/readygate/readygate/internal/mutatingpolicy"
)

const (
	// cacheSyncTimeout is long: if rules of one kind cannot be read, the other controllers of the manager still run.
	cacheSyncTimeout = 1000 * time.Hour

	// apiInterval is the time between two lookups of the API in a cluster without it.
	apiInterval = time.Minute

	// Backoff after a failed or rejected request. It starts short: an API server that has just started rejects all
	// requests until it has read the roles.
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// request is the only request of the controller.
func (r *Reconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: r.Policy.Name}}
}

// SetupWithManager starts the controller. It reconciles the policy at the start, and after a change of a rule, the
// policy or its binding.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) (err error) {
	if r.client, err = mutatingpolicy.NewClient(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return err
	}
	failed := make(chan struct{}, 1)
	policies, err := r.newCache(mgr, failed)
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(r.Policy.Name).
		Watches(r.Policy.Rule, handler.Funcs{
			CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.Add(r.request()) },
			UpdateFunc: r.onRuleUpdate,
			DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.Add(r.request()) },
		}).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			q.Add(r.request())
			go r.watchPolicy(ctx, policies, failed, q)
			return nil
		})).
		WithOptions(controller.Options{
			CacheSyncTimeout: cacheSyncTimeout,
			RateLimiter:      workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
}

// newCache returns a cache of the policy and its binding. The manager's own cache is not used, because it does not
// start if the cluster lacks an API that it has a selector for. It sends to the channel when a watch fails.
func (r *Reconciler) newCache(mgr manager.Manager, failed chan<- struct{}) (cache.Cache, error) {
	policies, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.Policy.Name),
		DefaultTransform:     cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
			select {
			case failed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return policies, mgr.Add(policies)
}

func (r *Reconciler) onRuleUpdate(_ context.Context, e event.UpdateEvent, q queue) {
	if !r.Policy.Same(e.ObjectOld, e.ObjectNew) {
		q.Add(r.request())
	}
}

// notWatched is the watched version before the first watch, and after one that failed.
const notWatched = "none yet"

// watchPolicy watches the policy and its binding in the version that the API server serves, and nothing if it serves none. An
// upgrade of the API server can change the version: a watch fails then. The manager does not wait for the first watch.
func (r *Reconciler) watchPolicy(ctx context.Context, policies informers, failed <-chan struct{}, q queue) {
	watched := notWatched
	for ctx.Err() == nil {
		var err error
		if watched, err = r.watchServed(ctx, policies, watched, q); err != nil {
			log.FromContext(ctx).V(1).Info("Watching the policy failed", "policy", r.Policy.Name, "error", err) // reconciles report it
		}
		var again <-chan time.Time // never, while the watches work
		if err != nil || watched == "" {
			again = time.After(apiInterval)
		}
		select {
		case <-ctx.Done():
		case <-failed:
		case <-again:
		}
	}
}

// informers are the informers of a cache.
type informers interface {
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
	RemoveInformer(ctx context.Context, obj client.Object) error
}

// watchServed watches the served version if it is not the watched one, and returns which one is watched now; empty if the API
// server serves none.
func (r *Reconciler) watchServed(ctx context.Context, policies informers, watched string, q queue) (string, error) {
	version, err := r.client.Version(ctx)
	if meta.IsNoMatchError(err) {
		version, err = "", nil
	}
	if err != nil || version == watched {
		return watched, err
	}
	log.FromContext(ctx).Info("Served version of MutatingAdmissionPolicy", "policy", r.Policy.Name, "version", version, "before", watched)
	for _, before := range mutatingpolicy.Versions { // also what is left of a watch that failed
		for _, obj := range mutatingpolicy.Empty(before) {
			if err := policies.RemoveInformer(ctx, obj); err != nil {
				return notWatched, err
			}
		}
	}
	for _, obj := range mutatingpolicy.Empty(version) {
		if err := r.watch(ctx, policies, obj, q); err != nil {
			return notWatched, err
		}
	}
	q.Add(r.request())
	return version, nil
}

func (r *Reconciler) watch(ctx context.Context, c informers, obj client.Object, q queue) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changed := func(any) { q.Add(r.request()) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
	})
	return err
}
