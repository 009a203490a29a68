package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/quota"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
)

const (
	// attempts is how often one reconcile decides again after a conflict.
	attempts = 5

	// A rejected write is retried after rejectedFirst, then after twice as long each time, up to rejectedLast. Only a
	// user can fix the cause, and the fix (a policy, a role) may not change the node. But an API server that has just
	// started also rejects everything for a moment.
	rejectedFirst = time.Second
	rejectedLast  = 5 * time.Minute

	// limitedRetry is when a node is evaluated again that stays released because maxUnavailable is reached. Usually
	// one of the held nodes is released before, which requeues it.
	limitedRetry = 15 * time.Second

	// maxServerErrors is how many errors of the server in a row are reported as a rejection: a webhook that is down
	// also needs a user.
	maxServerErrors = 5
)

// Reconciler applies the rules to single nodes. All fields are required.
type Reconciler struct {
	// Client patches nodes.
	Client client.Client
	// Live reads from the API server before records of a deleted rule are removed.
	Live     client.Reader
	Nodes    *nodecache.Cache
	Rules    *rulecache.Cache
	Failures *Failures
	// Owners is the list of rule taints. A rule is in it before a node has a record of the rule.
	Owners *ruletaints.List
	// Quota enforces maxUnavailable.
	Quota   *quota.Allocator
	Events  events.EventRecorder
	Metrics *Metrics
	Clock   clock.PassiveClock

	writing  atomic.Int64 // patches in flight
	deleted  deletedRules
	unlisted unlistedRecords
}

// Writing reports whether a patch of a node is in flight. Less urgent writes wait meanwhile.
func (r *Reconciler) Writing() bool { return r.writing.Load() > 0 }

// Reconcile evaluates all rules for one node, and sends at most one patch.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj, err := r.Quota.Read(ctx, req.Name, false)
	if err != nil {
		return r.gone(req.Name, err)
	}
	now := r.Clock.Now() // once: the same decision must make the same patch
	read := now
	var before []byte
	for range attempts {
		d, err := r.decide(ctx, obj, now)
		if err != nil {
			return reconcile.Result{}, err
		}
		r.reportUnlisted(ctx, d)
		if d.plan.Empty() {
			r.Failures.Clear(req.Name)
			return r.requeue(d), nil
		}
		err = r.write(ctx, d, read)
		switch {
		case err == nil:
			r.Failures.Clear(req.Name)
			r.announce(ctx, d)
			return r.requeue(d), nil
		case isConflict(err) && !bytes.Equal(d.patch, before):
			r.Metrics.conflicts.Inc()
			before = d.patch
			if obj, err = r.Quota.Read(ctx, req.Name, true); err != nil {
				return r.gone(req.Name, err)
			}
			read = r.Clock.Now()
		case isConflict(err), isRejection(err), isServerError(err) && r.Failures.Passing(req.Name) >= maxServerErrors:
			// A conflict for which fresh state gives the same patch is a rejection: a webhook can reject with the
			// same code.
			d.reservation.Abort()
			return reconcile.Result{RequeueAfter: r.rejected(ctx, d, err)}, nil
		default:
			return r.gone(req.Name, fmt.Errorf("patching node: %w", err))
		}
	}
	return reconcile.Result{}, errors.New("patching node: its taints changed during every attempt")
}

// decision is a plan with what it was made from.
type decision struct {
	*noderule.Evaluation
	reservation *quota.Reservation
	plan        *noderule.Plan
	patch       []byte
}

// requeue requests another reconcile when time alone may change the decision.
func (r *Reconciler) requeue(d decision) reconcile.Result {
	now, due := r.Clock.Now(), d.reservation.RetryAt
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for i := range d.Verdicts {
		sooner(d.Verdicts[i].Until)
		if d.Verdicts[i].Cause == noderule.CauseLimit {
			sooner(now.Add(limitedRetry))
		}
	}
	if due.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(due.Sub(now), time.Millisecond)}
}

// decide evaluates all rules, applies limits, and plans.
func (r *Reconciler) decide(ctx context.Context, obj *corev1.Node, now time.Time) (decision, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return decision{}, err
	}
	if err := r.Owners.Enter(ctx, book); err != nil {
		return decision{}, err
	}
	start := r.Clock.Now()
	d := decision{Evaluation: book.Evaluate(noderule.NodeOf(obj), now)}
	r.Metrics.evaluated(d.Verdicts, r.Clock.Since(start))
	if d.reservation, err = r.Quota.Reserve(ctx, book, obj, d.Evaluation); err != nil {
		log.FromContext(ctx).Error(err, "Listing nodes failed; rules with maxUnavailable will not taint nodes in use until it succeeds")
	}
	if d.plan = d.Plan(r.Owners.Taints()); d.plan.Empty() {
		return d, nil
	}
	d.patch, err = jsonPatch(d.Node, d.plan)
	return d, err
}

// errOutdated is the error of a decision from before a change of the rules.
var errOutdated = errors.New("not written: the rules have changed since the decision")

// write sends the patch of a decision about a node that was read before the given time.
func (r *Reconciler) write(ctx context.Context, d decision, read time.Time) error {
	err := r.confirmGone(ctx, d.plan.Swept, read)
	if err != nil {
		d.reservation.Abort()
		return err
	}
	sent := d.reservation.Commit(d.plan, func() (*corev1.Node, quota.Outcome) {
		var written *corev1.Node
		r.writing.Add(1)
		defer r.writing.Add(-1)
		written, err = send(ctx, r.Client, d.Node.Name, d.patch)
		return written, outcomeOf(err)
	})
	if !sent {
		d.reservation.Abort()
		return errOutdated
	}
	return err
}

func outcomeOf(err error) quota.Outcome {
	switch {
	case err == nil:
		return quota.Written
	case apierrors.IsNotFound(err):
		return quota.NotFound
	case isConclusive(err):
		return quota.NotWritten
	default:
		return quota.Unanswered
	}
}

// announce reports a plan that was applied, in events, metrics and the log.
func (r *Reconciler) announce(ctx context.Context, d decision) {
	now := r.Clock.Now()
	r.record(d.Node, d.plan.Changes)
	r.recordDeadlines(d, now)
	changes := make([]string, len(d.plan.Changes))
	for i, change := range d.plan.Changes {
		changes[i] = string(change.Kind) + " " + change.Taint.String() + " by " + change.Rule
		if !slices.Contains(d.plan.Swept, change.UID) { // the series of a rule that does not exist would stay
			r.Metrics.changed(d, change, now)
		}
	}
	log.FromContext(ctx).Info("Node changed", "changes", changes) // one line per write
}

// rejected records a write that only a user can make possible, and returns when to retry.
func (r *Reconciler) rejected(ctx context.Context, d decision, err error) time.Duration {
	reason := string(apierrors.ReasonForError(err))
	var rules []string
	for _, change := range d.plan.Changes {
		if !slices.Contains(rules, change.Rule) {
			rules = append(rules, change.Rule)
			r.Metrics.failures.WithLabelValues(change.Rule, reason).Inc()
		}
	}
	before := r.Failures.Record(d.Node.Name, Failure{Reason: reason, Message: err.Error(), At: r.Clock.Now(), Rules: rules})
	if before == 0 {
		log.FromContext(ctx).Error(err, "Node write rejected", "rules", rules)
		r.recordRefusal(d.Node, d.plan.Changes[0], rules, err)
	}
	return min(rejectedFirst<<min(before, 10), rejectedLast)
}

// gone returns the result of a failed request: a node that does not exist needs no retry.
func (r *Reconciler) gone(node string, err error) (reconcile.Result, error) {
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	r.Failures.Clear(node)
	r.Metrics.unlistedNodes.Add(r.unlisted.forget(node))
	return reconcile.Result{}, nil
}
