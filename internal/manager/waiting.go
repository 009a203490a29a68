package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controller/upkeep"
	"github.com/readygate/readygate/internal/leadership"
	"github.com/readygate/readygate/internal/policy"
	"github.com/readygate/readygate/internal/rulebook"
)

const (
	// waitingCheck is how often a manager checks whether it waits. That costs no request.
	waitingCheck = time.Second

	// waitingInterval is the time between two LISTs of the rules while it waits.
	waitingInterval = time.Minute

	// waitingRewrite is the minimum time between two writes of the condition to one rule. Another
	// controller that removes the condition whenever it writes the status is not fought.
	waitingRewrite = 5 * time.Minute

	// waitingTimeout is the timeout of one request.
	waitingTimeout = 10 * time.Second
)

// namespaceOfManagers is the namespace in which other managers hold the lease, if this one holds none.
func (o *Options) namespaceOfManagers() string {
	if namespace := o.namespace(); namespace != "" {
		return namespace
	}
	return policy.ManagerNamespace
}

// others observes leases in all namespaces but that of the manager's own lease.
func (o *Options) others() *leadership.Others {
	own := ""
	if o.LeaderElect {
		own = o.namespace()
	}
	return leadership.NewOthers(clock.RealClock{}, own)
}

// addLeadership shows other controllers of this API: those that do not keep the manager from leading, while
// it leads, and those that do, while it waits.
func (o *Options) addLeadership(mgr manager.Manager, lock *exclusiveLock, config *rest.Config, others *leadership.Others) error {
	config.Timeout = waitingTimeout
	writer, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	leadership.RegisterMetrics(o.Registerer, others, func() bool { return lock.waitingIn() != "" })
	w := &waiting{in: lock.waitingIn, client: writer, pods: o.servesPods(), clock: clock.RealClock{}, written: map[types.UID]time.Time{}}
	return errors.Join(
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			others.Run(ctx, mgr.GetAPIReader())
			return nil
		})),
		mgr.Add(standby(func(ctx context.Context) error {
			wait.UntilWithContext(ctx, w.check, waitingCheck)
			return nil
		})))
}

// waiting sets the condition SoleController on rules while the manager waits for a lease. It writes nothing
// else, and each write fails if the rule has changed meanwhile: the other controller writes its status. The
// manager that leads next removes the condition.
type waiting struct {
	in     func() string
	client client.Client
	// pods says that this manager looks after rules for pods, and so would remove the condition there.
	pods  bool
	clock clock.PassiveClock

	listed  time.Time
	written map[types.UID]time.Time
}

// check writes the condition to the rules if the manager waits, and at most every waitingInterval.
func (w *waiting) check(ctx context.Context) {
	namespace := w.in()
	if namespace == "" || !w.listed.IsZero() && w.clock.Since(w.listed) < waitingInterval {
		return
	}
	w.listed = w.clock.Now()
	rules, err := w.rules(ctx)
	if err != nil {
		log.Error(err, "Listing rules failed; they do not show yet that the manager waits")
	}
	for _, rule := range rules {
		if w.in() != namespace { // it leads now, or another replica does
			return
		}
		err := w.write(ctx, rule, leadership.Waiting(namespace))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			log.Error(err, "Writing the condition "+v1alpha1.ConditionSoleController+" failed", "rule", rule.GetName())
		}
	}
}

func (w *waiting) rules(ctx context.Context) ([]client.Object, error) {
	var (
		nodes v1alpha1.NodeReadinessRuleList
		pods  podv1alpha1.PodReadinessRuleList
		rules []client.Object
	)
	err := rulebook.ListLive(ctx, w.client, &nodes)
	for i := range nodes.Items {
		rules = append(rules, &nodes.Items[i])
	}
	if w.pods {
		err = errors.Join(err, rulebook.ListLive(ctx, w.client, &pods))
		for i := range pods.Items {
			rules = append(rules, &pods.Items[i])
		}
	}
	return rules, err
}

func (w *waiting) write(ctx context.Context, rule client.Object, condition metav1.Condition) error {
	last, ok := w.written[rule.GetUID()]
	if ok && w.clock.Since(last) < waitingRewrite {
		return nil
	}
	base := rule.DeepCopyObject().(client.Object)
	condition.ObservedGeneration = rule.GetGeneration()
	if !meta.SetStatusCondition(conditionsOf(rule), condition) {
		return nil
	}
	if err := w.client.Status().Patch(ctx, rule, upkeep.Locked(base)); err != nil {
		return fmt.Errorf("patching status: %w", err)
	}
	w.written[rule.GetUID()] = w.clock.Now()
	return nil
}

func conditionsOf(rule client.Object) *[]metav1.Condition {
	if pods, ok := rule.(*podv1alpha1.PodReadinessRule); ok {
		return &pods.Status.Conditions
	}
	return &rule.(*v1alpha1.NodeReadinessRule).Status.Conditions
}
