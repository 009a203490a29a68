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

	// While node writes are in flight, a status write is deferred: the rule is requeued after busyRest, and its
	// status is written after busyInterval at the latest.
	busyInterval = 10 * time.Second
	busyRest     = 300 * time.Millisecond

	// nodeRest is the delay from a change of a node to the reconcile of its rules. By then the node is usually
	// written, so that one status write is enough.
	nodeRest = 300 * time.Millisecond

	// conflictRetry is the delay after a conflict. The rule is then reconciled from fresh state.
	conflictRetry = 100 * time.Millisecond

	// Backoff after a failed or rejected write. It starts short: an API server that has just started rejects all
	// requests until it has read the roles.
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

// Reconciler writes the status and the finalizer of NodeReadinessRules. All exported fields are required.
type Reconciler struct {
	// Client reads from the cache, own writes included, and writes rules.
	Client client.Client
	Nodes  *nodecache.Cache
	// DaemonSets returns all DaemonSets, as reporters.Strip leaves them.
	DaemonSets func() iter.Seq[*appsv1.DaemonSet]
	Rules      *rulecache.Cache
	Failures   *node.Failures
	Coverage   *admission.Coverage
	Others     *leadership.Others
	// Owners is the list of rule taints, and ListRest how long an entry stays after the last trace of its rule is
	// gone.
	Owners   *ruletaints.List
	ListRest time.Duration
	Events   events.EventRecorder
	Metrics  *Metrics
	Clock    clock.PassiveClock
	// Busy reports whether nodes are being written. The status is deferred meanwhile.
	Busy func() bool

	writes rulecache.StatusWrites
	// idle is since when no trace of a deleted rule is left; only tidyList uses it.
	idle map[types.UID]time.Time
}

// Reconcile updates the status and the finalizer of one rule.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req == listRequest {
		return r.tidyList(ctx)
	}
	var obj v1alpha1.NodeReadinessRule
	if err := r.Client.Get(ctx, req.NamespacedName, &obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.writes.Forget(req.Name)
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
		r.writes.UpToDate(req.Name)
		return reconcile.Result{RequeueAfter: again}, nil
	}
}

// isRefusal reports whether the API server will return the same error until a policy or a role changes.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// bringUpToDate returns the time until the next reconcile without an event; zero: none.
func (r *Reconciler) bringUpToDate(ctx context.Context, obj *v1alpha1.NodeReadinessRule) (time.Duration, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return 0, err
	}
	rule := book.Rule(obj.UID)
	if rule == nil {
		return 0, nil // deleted, or recreated under the same name: another event follows
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

// reportersOf returns the DaemonSets that report for the rule and do not tolerate its taint, and the number of all
// DaemonSets that report for it.
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

// nodes returns all nodes of the cache, own writes included.
func (r *Reconciler) nodes(ctx context.Context) (iter.Seq[*noderule.Node], error) {
	// Any read through the client waits until the cache has the own writes.
	if err := r.Client.List(ctx, &corev1.NodeList{}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return r.knownNodes(), nil
}

// knownNodes returns all nodes of the cache.
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
	r.writes.Wrote(obj.Name, r.Clock.Now())
	r.announce(base, obj)
	return nil
}

func (r *Reconciler) untilNextWrite(rule string) time.Duration {
	last, ok := r.writes.Last(rule)
	if !ok {
		return 0
	}
	now := r.Clock.Now()
	if wait := statusInterval - now.Sub(last); wait > 0 {
		return wait
	}
	if r.Busy() && now.Sub(r.writes.Defer(rule, now)) < busyInterval {
		return busyRest
	}
	return 0
}
