package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/ledger"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/roster"
	"github.com/readygate/readygate/internal/rulebook"
)

const (
	// attempts bounds how often one reconcile decides again after a conflict. Whoever
	// conflicts that often is in a loop of its own; the queue backs off then.
	attempts = 5

	// A refused write rests for refusedFirst, then twice as long each time, to refusedLast.
	// Only a user can mend it, and the mend (a policy, a role) may not touch the node. But an
	// API server that has just started refuses everything for a moment, too.
	refusedFirst = time.Second
	refusedLast  = 5 * time.Minute

	// passingLimit is how many failures of the server in a row are shown as a refusal: what
	// answers with an error for so long (a webhook that is down) needs somebody, too.
	passingLimit = 5
)

// Reconciler brings single nodes to what the rules want. All fields are required.
type Reconciler struct {
	// Client reads nodes from the cache, own writes included, and patches them.
	Client client.Client
	// Live reads past the cache; used only after a conflict and before something is swept.
	Live     client.Reader
	Nodes    *roster.Roster
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
	now := r.Clock.Now() // once: the same decision must make the same patch
	var before []byte
	for range attempts {
		d, err := r.decide(ctx, readiness.NodeOf(&obj), now)
		if err != nil {
			return reconcile.Result{}, err
		}
		if d.plan.Empty() {
			r.Failures.Clear(req.Name)
			return reconcile.Result{}, nil
		}
		err = r.write(ctx, d)
		switch {
		case err == nil:
			r.Failures.Clear(req.Name)
			r.announce(ctx, d)
			return reconcile.Result{}, nil
		case isConflict(err) && !bytes.Equal(d.patch, before):
			r.Metrics.conflicts.Inc()
			before, obj = d.patch, corev1.Node{}
			if err := r.Live.Get(ctx, req.NamespacedName, &obj); err != nil {
				return r.gone(req.Name, err)
			}
		case isConflict(err), isRefusal(err), isServerError(err) && r.Failures.Passing(req.Name) >= passingLimit:
			// A conflict in which fresh state makes the same patch again is none: a webhook
			// can refuse with the same code.
			return reconcile.Result{RequeueAfter: r.refused(ctx, d, err)}, nil
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
	patch    []byte
}

func (r *Reconciler) decide(ctx context.Context, node *readiness.Node, now time.Time) (decision, error) {
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
	d := decision{node: node, verdicts: verdicts, plan: readiness.PlanFor(node, verdicts, now)}
	if !d.plan.Empty() {
		d.patch, err = jsonPatch(node, d.plan)
	}
	return d, err
}

func (r *Reconciler) write(ctx context.Context, d decision) error {
	if err := r.confirmGone(ctx, d.plan.Swept); err != nil {
		return err
	}
	return send(ctx, r.Client, d.node.Name, d.patch)
}

// confirmGone asks the API server whether rules that the cache does not know exist: what
// they left is swept for good, and a cache can be behind.
func (r *Reconciler) confirmGone(ctx context.Context, rules []types.UID) error {
	if len(rules) == 0 {
		return nil
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeReadinessRuleList"))
	if err := rulebook.ListLive(ctx, r.Live, &list); err != nil {
		return err
	}
	for i := range list.Items {
		if slices.Contains(rules, list.Items[i].UID) {
			return fmt.Errorf("rule %s exists, but the cache does not know it yet", list.Items[i].Name)
		}
	}
	return nil
}

// announce tells of a plan that was applied.
func (r *Reconciler) announce(ctx context.Context, d decision) {
	now := r.Clock.Now()
	r.record(d.node, d.plan.Changes)
	for _, change := range d.plan.Changes {
		log.FromContext(ctx).Info("Node changed", "change", change.Kind, "rule", change.Rule, "taint", change.Taint.String())
		if !slices.Contains(d.plan.Swept, change.UID) { // series of a rule that is gone would stay
			r.Metrics.changed(d, change, now)
		}
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
		r.recordRefusal(d.node, d.plan.Changes[0], rules, err)
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
