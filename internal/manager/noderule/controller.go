package noderule

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/reporters"
	"github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
)

const (
	// statusInterval is the least time between two status writes of one rule.
	statusInterval = time.Second

	// While nodes are being written, a status gives way to them: it is looked at again after
	// busyRest, and written when it has waited for busyInterval all the same.
	busyInterval = 10 * time.Second
	busyRest     = 300 * time.Millisecond

	// nodeRest is how long a change of a node rests before the status follows: the node
	// is then usually written, and the status needs to be written once, not twice.
	nodeRest = 300 * time.Millisecond

	// conflictRetry is when a write that met another one is tried again from fresh state.
	conflictRetry = 100 * time.Millisecond

	// Back-off of a write that failed or was refused. It begins short: an API server that has
	// just started refuses everything for a moment, and does not know any role yet.
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

// Reconciler keeps the status and the finalizer of rules. All exported fields are required.
type Reconciler struct {
	// Client reads from the cache, own writes included, and writes rules.
	Client client.Client
	Nodes  *nodecache.Cache
	// DaemonSets are all of them, as workload.Strip leaves them.
	DaemonSets func() iter.Seq[*appsv1.DaemonSet]
	Rules      *rulecache.Shelf
	Failures   *node.Failures
	Coverage   *admission.Coverage
	Others     *leadership.Others
	// Owners is the list of rule taints, and ListRest how long an entry stays after nothing of its
	// rule is left.
	Owners   *ruletaints.List
	ListRest time.Duration
	Events   events.EventRecorder
	Metrics  *Metrics
	Clock    clock.PassiveClock
	// Busy reports whether nodes are being written. The status is deferred meanwhile.
	Busy func() bool

	pace rulecache.Pace
	// idle is since when nothing is left of rules that are gone; only tidyList uses it.
	idle map[types.UID]time.Time
}

// Reconcile brings status and finalizer of one rule up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req == listRequest {
		return r.tidyList(ctx)
	}
	var obj v1alpha1.NodeReadinessRule
	if err := r.Client.Get(ctx, req.NamespacedName, &obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.Forget(req.Name)
			r.Metrics.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if obj.Status.ObservedGeneration == obj.Generation {
		if wait := r.untilNextWrite(req.Name); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
	}
	again, err := r.bringUpToDate(ctx, &obj)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		return reconcile.Result{}, client.IgnoreNotFound(err)
	default:
		r.pace.Goes(req.Name)
		return reconcile.Result{RequeueAfter: again}, nil
	}
}

// isRefusal says that the API server will answer the same until somebody changes a policy or
// a role.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// bringUpToDate also says when to look again although nothing changed; zero: never.
func (r *Reconciler) bringUpToDate(ctx context.Context, obj *v1alpha1.NodeReadinessRule) (time.Duration, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return 0, err
	}
	rule := book.Rule(obj.UID)
	if rule == nil {
		return 0, nil // gone, or made again under the same name: that is another event
	}
	if err := r.Owners.Enter(ctx, book); err != nil {
		return 0, err
	}
	refusal := rulecache.AddFinalizer(ctx, r.Client, obj, v1alpha1.Finalizer)
	if refusal != nil && !isRefusal(refusal) {
		return 0, refusal
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return 0, err
	}
	s := standing{rule: rule, summary: noderule.Summarize(rule, nodes, r.Clock.Now(), v1alpha1.MaxListedNodes), failures: r.Failures.Of(rule.Name), refusal: refusal, others: r.Others.Condition()}
	s.retry, s.unlisted = r.Owners.Problem()
	s.creation = r.creationOf(rule, &obj.Status)
	s.blocked, s.reporters = r.reportersOf(rule)
	r.Metrics.reconciled(rule.Name, r.Clock.Now())
	if s.cleanedUp() && controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return 0, rulecache.DropFinalizer(ctx, r.Client, obj, v1alpha1.Finalizer)
	}
	return s.again(r.Clock.Now()), errors.Join(r.writeStatus(ctx, obj, s), refusal)
}

// reportersOf are the DaemonSets that report for the rule and do not tolerate its taint, and how many
// report for it at all.
func (r *Reconciler) reportersOf(rule *noderule.Rule) (blocked []string, known int) {
	if !rule.Active() {
		return nil, 0
	}
	return reporters.Find(r.DaemonSets(), conditionTypes(rule), &rule.Taint, rule.CanSelect)
}

func conditionTypes(rule *noderule.Rule) []string {
	types := make([]string, len(rule.Requirements))
	for i := range types {
		types[i] = rule.Requirements[i].Type
	}
	return types
}

// nodes are all nodes, as they are after our own writes.
func (r *Reconciler) nodes(ctx context.Context) (iter.Seq[*noderule.Node], error) {
	// The client waits for them whatever it is asked for.
	if err := r.Client.List(ctx, &corev1.NodeList{}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return r.knownNodes(), nil
}

// knownNodes are all nodes that the cache has.
func (r *Reconciler) knownNodes() iter.Seq[*noderule.Node] {
	all := r.Nodes.All()
	return func(yield func(*noderule.Node) bool) {
		for node := range all {
			if !yield(noderule.NodeOf(node)) {
				return
			}
		}
	}
}

func (r *Reconciler) writeStatus(ctx context.Context, obj *v1alpha1.NodeReadinessRule, s standing) error {
	base := obj.DeepCopy()
	obj.Status = statusOf(s, &base.Status, metav1.NewTime(r.Clock.Now()))
	if equality.Semantic.DeepEqual(base.Status, obj.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, obj, rulecache.Locked(base)); err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	r.pace.Wrote(obj.Name, r.Clock.Now())
	r.announce(base, obj)
	return nil
}

func (r *Reconciler) untilNextWrite(rule string) time.Duration {
	last, ok := r.pace.Last(rule)
	if !ok {
		return 0
	}
	now := r.Clock.Now()
	if wait := statusInterval - now.Sub(last); wait > 0 {
		return wait
	}
	if r.Busy() && now.Sub(r.pace.Waits(rule, now)) < busyInterval {
		return busyRest
	}
	return 0
}
