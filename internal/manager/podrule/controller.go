package podrule

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/text"
)

const (
	// statusInterval is the minimum time between two status writes of one rule: all agents watch the rules.
	statusInterval = 5 * time.Second

	// requestTimeout bounds one request of a round or a sweep.
	requestTimeout = time.Minute

	// conflictRetry is the delay after a conflict. The rule is then reconciled from fresh state.
	conflictRetry = 100 * time.Millisecond
)

// Reconciler reconciles PodReadinessRules. All exported fields are required.
type Reconciler struct {
	// Client reads rules and leases from the cache, and writes.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Nodes    *nodecache.Cache
	Coverage *admission.Coverage
	Others   *leadership.Others
	// HoldsStart is true if the manager has a latch image.
	HoldsStart bool
	// Manual is true if an administrator applies the admission policy.
	Manual  bool
	Events  events.EventRecorder
	Metrics *Metrics
	Clock   clock.PassiveClock

	watcher watcher
	orphans orphans
	writes  rulecache.StatusWrites
	sweeps  *sweeps
	again   chan event.GenericEvent
}

// Reconcile updates the status and the finalizer of one rule.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var obj v1alpha1.PodReadinessRule
	if err := r.Client.Get(ctx, req.NamespacedName, &obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.writes.Forget(req.Name)
			r.Metrics.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := r.untilNextWrite(&obj); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	again, err := r.bringUpToDate(ctx, &obj)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// bringUpToDate returns the time to the next reconcile without an event.
func (r *Reconciler) bringUpToDate(ctx context.Context, obj *v1alpha1.PodReadinessRule) (time.Duration, error) {
	if err := rulecache.AddFinalizer(ctx, r.Client, obj, v1alpha1.Finalizer); err != nil {
		return 0, err
	}
	rule := podrule.NewRule(obj)
	alive, err := r.agents(ctx)
	if err != nil {
		return 0, err
	}
	s := standing{rule: rule, holdsStart: r.HoldsStart, others: r.Others.Condition()}
	var wait time.Duration
	s.gap, wait, s.known = r.Coverage.Covers(rule.UID, wasCovered(obj))
	s.known = s.known && r.orphans.ended.Load()
	s.count(alive, &r.orphans)
	if rule.Deleting {
		return r.end(ctx, obj, s)
	}
	again := recheckInterval
	if wait > 0 {
		again = min(again, wait+time.Millisecond)
	}
	return again, r.writeStatus(ctx, obj, s)
}

func wasCovered(obj *v1alpha1.PodReadinessRule) bool {
	c := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionEnforced)
	return c != nil && c.ObservedGeneration == obj.Generation && (c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonNoAgent)
}

// end removes the finalizer of a deleted rule when no API server adds its gate to pods anymore, and no pod waits for it.
func (r *Reconciler) end(ctx context.Context, obj *v1alpha1.PodReadinessRule, s standing) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer) {
		return 0, nil
	}
	gone, wait := r.Coverage.Gone(obj.UID)
	if !gone {
		return max(wait, time.Second), r.writeStatus(ctx, obj, s)
	}
	ended, again, failure := r.sweeps.result(obj.UID, r.Clock.Now())
	if s.failure = failure; failure != nil {
		return again, r.writeStatus(ctx, obj, s)
	}
	if !ended {
		return recheckInterval, nil // the end of the sweep requeues the rule
	}
	if err := rulecache.DropFinalizer(ctx, r.Client, obj, v1alpha1.Finalizer); err != nil {
		return 0, err
	}
	log.FromContext(ctx).Info("Removed finalizer")
	return 0, nil
}

func (r *Reconciler) writeStatus(ctx context.Context, obj *v1alpha1.PodReadinessRule, s standing) error {
	base := obj.DeepCopy()
	obj.Status = s.status(&base.Status, obj.Generation, metav1.NewTime(r.Clock.Now()))
	r.Metrics.reconciled(obj.Name, &obj.Status)
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

// announce emits an event when an administrator must apply the policy.
func (r *Reconciler) announce(before, after *v1alpha1.PodReadinessRule) {
	was, is := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionEnforced), meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionEnforced)
	if is.Reason == nodev1alpha1.ReasonPolicyOutdated && (was == nil || was.Reason != is.Reason) {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, nodev1alpha1.EventPolicyOutdated, nodev1alpha1.ActionApplyPolicy, "%s", text.Cut(is.Message, text.Event))
	}
}

// untilNextWrite returns the time to the next status write; 0 if the status is of an older generation of the rule.
func (r *Reconciler) untilNextWrite(obj *v1alpha1.PodReadinessRule) time.Duration {
	last, ok := r.writes.Last(obj.Name)
	if !ok || obj.Status.ObservedGeneration != obj.Generation {
		return 0
	}
	return statusInterval - r.Clock.Since(last)
}

// Rules returns all rules of a reader, compiled, oldest first.
func Rules(ctx context.Context, from client.Reader) ([]*podrule.Rule, error) {
	var list v1alpha1.PodReadinessRuleList
	if err := from.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing PodReadinessRules: %w", err)
	}
	return podrule.NewRules(rulecache.Pointers(list.Items)), nil
}

// Same reports whether two versions of a rule are equivalent.
func Same(before, after client.Object) bool {
	return before.GetUID() == after.GetUID() && before.GetGeneration() == after.GetGeneration() &&
		(before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil)
}
