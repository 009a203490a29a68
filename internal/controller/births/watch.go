package births

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// apiInterval is how often a cluster without the API is asked whether it has it now.
const apiInterval = time.Minute

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// thePolicy is all that there is to look at.
var thePolicy = reconcile.Request{NamespacedName: types.NamespacedName{Name: policy.BirthsName}}

// SetupWithManager starts a controller that looks at the policy at the start, and when a rule,
// the policy or its binding changed.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("births").
		Watches(&v1alpha1.NodeReadinessRule{}, handler.Funcs{
			CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.Add(thePolicy) },
			UpdateFunc: onRuleUpdate,
			DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.Add(thePolicy) },
		}).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			q.Add(thePolicy)
			go watchPolicy(ctx, mgr, q)
			return nil
		})).
		Complete(r)
}

func onRuleUpdate(_ context.Context, e event.UpdateEvent, q queue) {
	if !readiness.SameRule(e.ObjectOld.(*v1alpha1.NodeReadinessRule), e.ObjectNew.(*v1alpha1.NodeReadinessRule)) {
		q.Add(thePolicy)
	}
}

// watchPolicy watches the policy and its binding from when the cluster has such things.
// Nothing else waits for it: a manager works without.
func watchPolicy(ctx context.Context, mgr manager.Manager, q queue) {
	for _, obj := range Watched() {
		_ = wait.PollUntilContextCancel(ctx, apiInterval, true, func(ctx context.Context) (bool, error) {
			err := watch(ctx, mgr.GetCache(), obj, q)
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

// Watched are the objects of which the cache needs only the one of our name.
func Watched() []client.Object {
	return []client.Object{&admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}}
}
