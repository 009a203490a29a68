package births

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
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

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/policy"
	"github.com/readygate/readygate/internal/readiness"
)

const (
	// apiInterval is how often a cluster without the API is asked whether it has it now.
	apiInterval = time.Minute

	// Back-off of a request that failed or was refused. It begins short: an API server that
	// has just started refuses everything for a moment, and does not know any role yet.
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// thePolicy is all that there is to look at.
var thePolicy = reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.BirthsName}}

// SetupWithManager starts a controller that looks at the policy at the start, and when a rule,
// the policy or its binding changed.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	policies, err := newCache(mgr)
	if err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named("births").
		Watches(&v1alpha1.NodeReadinessRule{}, handler.Funcs{
			CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.Add(thePolicy) },
			UpdateFunc: onRuleUpdate,
			DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.Add(thePolicy) },
		}).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			q.Add(thePolicy)
			go watchPolicy(ctx, policies, q)
			return nil
		})).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
}

// newCache is a cache of the one policy and its binding. It is not the manager's own, which
// does not even start where the cluster lacks something that it shall narrow.
func newCache(mgr manager.Manager) (cache.Cache, error) {
	policies, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:           mgr.GetHTTPClient(),
		Scheme:               mgr.GetScheme(),
		Mapper:               mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, policy.BirthsName),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return policies, mgr.Add(policies)
}

func onRuleUpdate(_ context.Context, e event.UpdateEvent, q queue) {
	if !readiness.SameRule(e.ObjectOld.(*v1alpha1.NodeReadinessRule), e.ObjectNew.(*v1alpha1.NodeReadinessRule)) {
		q.Add(thePolicy)
	}
}

// watchPolicy watches the policy and its binding from when the cluster has such things.
// Nothing else waits for it: a manager works without.
func watchPolicy(ctx context.Context, policies cache.Cache, q queue) {
	for _, obj := range []client.Object{&admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}} {
		_ = wait.PollUntilContextCancel(ctx, apiInterval, true, func(ctx context.Context) (bool, error) {
			err := watch(ctx, policies, obj, q)
			if err != nil && !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "Watching the policy failed")
			}
			return err == nil, nil
		}) // ends early only with the manager
	}
}

func watch(ctx context.Context, c cache.Cache, obj client.Object, q queue) error {
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	changed := func(any) { q.Add(thePolicy) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
	})
	return err
}
