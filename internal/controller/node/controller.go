package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/ledger"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/rulebook"
)

const (
	// attempts bounds how often one reconcile decides again after a conflict. Whoever
	// conflicts that often is in a loop of its own; the queue backs off then.
	attempts = 5

	// A refused write rests for refusedFirst, then twice as long each time, to refusedLast.
	// Only a user can mend it, and the mend (a policy, a role) may not touch the node.
	refusedFirst = 10 * time.Second
	refusedLast  = 5 * time.Minute
)

// Reconciler brings single nodes to what the rules want. All fields are required.
type Reconciler struct {
	// Client reads nodes from the cache, own writes included, and patches them.
	Client client.Client
	// Live reads past the cache; used only after a conflict.
	Live     client.Reader
	Rules    *rulebook.Shelf
	Failures *ledger.Failures
	Events   events.EventRecorder
	Metrics  *Metrics
	Clock    clock.PassiveClock
}

// Reconcile looks at one node and applies what all rules together ask for.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var obj corev1.Node
	if err := r.Client.Get(ctx, req.NamespacedName, &obj); err != nil {
		return r.gone(req.Name, err)
	}
	for range attempts {
		decision, err := r.decide(ctx, readiness.NodeOf(&obj))
		if err != nil {
			return reconcile.Result{}, err
		}
		if decision.plan.Empty() {
			r.Failures.Clear(req.Name)
			return reconcile.Result{}, nil
		}
		err = r.write(ctx, decision)
		switch {
		case err == nil:
			r.Failures.Clear(req.Name)
			r.announce(ctx, decision)
			return reconcile.Result{}, nil
		case isConflict(err):
			r.Metrics.conflicts.Inc()
			obj = corev1.Node{}
			if err := r.Live.Get(ctx, req.NamespacedName, &obj); err != nil {
				return r.gone(req.Name, err)
			}
		case isRefusal(err):
			return reconcile.Result{RequeueAfter: r.refused(ctx, decision, err)}, nil
		default:
			return r.gone(req.Name, fmt.Errorf("patching node: %w", err))
		}
	}
	return reconcile.Result{}, errors.New("patching node: its taints changed during every attempt")
}

// decision is a plan with what it was made from.
type decision struct {
	node     *readiness.Node
	verdicts []readiness.Verdict
	plan     *readiness.Plan
}

func (r *Reconciler) decide(ctx context.Context, node *readiness.Node) (decision, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return decision{}, err
	}
	verdicts := make([]readiness.Verdict, 0, len(book.Rules()))
	for _, rule := range book.Rules() {
		start := r.Clock.Now()
		verdict := readiness.Evaluate(rule, node)
		if verdict.State != readiness.NotSelected {
			r.Metrics.evaluated(verdict, r.Clock.Since(start))
		}
		verdicts = append(verdicts, verdict)
	}
	return decision{node: node, verdicts: verdicts, plan: readiness.PlanFor(node, verdicts, r.Clock.Now())}, nil
}

func (r *Reconciler) write(ctx context.Context, d decision) error {
	patch, err := jsonPatch(d.node, d.plan)
	if err != nil {
		return err
	}
	obj := &corev1.Node{}
	obj.Name = d.node.Name
	return r.Client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch))
}

// announce tells of a plan that was applied.
func (r *Reconciler) announce(ctx context.Context, d decision) {
	now := r.Clock.Now()
	for _, change := range d.plan.Changes {
		log.FromContext(ctx).Info("Node changed", "change", change.Kind, "rule", change.Rule, "taint", change.Taint.String())
		r.record(d.node, change)
		r.Metrics.changed(d, change, now)
	}
}

// refused remembers a write that only a user can make possible, and says when to try again.
func (r *Reconciler) refused(ctx context.Context, d decision, err error) time.Duration {
	reason := string(apierrors.ReasonForError(err))
	var rules []string
	for _, change := range d.plan.Changes {
		if !slices.Contains(rules, change.Rule) {
			rules = append(rules, change.Rule)
			r.Metrics.failures.WithLabelValues(change.Rule, reason).Inc()
		}
	}
	before := r.Failures.Record(d.node.Name, ledger.Failure{Reason: reason, Message: err.Error(), At: r.Clock.Now(), Rules: rules})
	if before == 0 {
		log.FromContext(ctx).Error(err, "Node write refused", "rules", rules)
		r.recordRefusal(d.node, rules, err)
	}
	return min(refusedFirst<<min(before, 10), refusedLast)
}

// gone is the result of a failed request: a node that does not exist needs nothing.
func (r *Reconciler) gone(node string, err error) (reconcile.Result, error) {
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	r.Failures.Clear(node)
	return reconcile.Result{}, nil
}
