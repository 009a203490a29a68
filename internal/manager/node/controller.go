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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/manager/quota"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
	"github.com/readygate/readygate/internal/paging"
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

	// limitedRest is when a node is looked at again that stays released because too many others are
	// away. Usually one of those comes back first, and that is seen.
	limitedRest = 15 * time.Second

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
	Nodes    *nodecache.Roster
	Rules    *rulecache.Shelf
	Failures *Failures
	// Owners is the list of rule taints: it has each rule before a node names it.
	Owners *ruletaints.List
	// Allotment keeps rules from taking too many nodes away.
	Allotment *quota.Allocator
	// Strip cuts nodes down as the cache does.
	Strip   func(any) (any, error)
	Events  events.EventRecorder
	Metrics *Metrics
	Clock   clock.PassiveClock

	deleted  deletedRules
	unlisted unlistedRecords
}

// Reconcile looks at one node and applies what all rules together ask for.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var obj corev1.Node
	if err := r.read(ctx, req.NamespacedName, &obj); err != nil {
		return r.gone(req.Name, err)
	}
	now := r.Clock.Now() // once: the same decision must make the same patch
	read := now
	var before []byte
	for range attempts {
		d, err := r.decide(ctx, &obj, now)
		if err != nil {
			return reconcile.Result{}, err
		}
		r.reportUnlisted(ctx, d)
		if d.plan.Empty() {
			r.Failures.Clear(req.Name)
			return r.later(d, now), nil
		}
		err = r.write(ctx, d, read)
		switch {
		case err == nil:
			r.Failures.Clear(req.Name)
			r.announce(ctx, d)
			return r.later(d, now), nil
		case isConflict(err) && !bytes.Equal(d.patch, before):
			r.Metrics.conflicts.Inc()
			before, obj = d.patch, corev1.Node{}
			if err := r.Live.Get(ctx, req.NamespacedName, &obj); err != nil {
				return r.gone(req.Name, err)
			}
			read = r.Clock.Now()
		case isConflict(err), isRefusal(err), isServerError(err) && r.Failures.Passing(req.Name) >= passingLimit:
			// A conflict in which fresh state makes the same patch again is none: a webhook
			// can refuse with the same code.
			r.Allotment.Refused(req.Name)
			return reconcile.Result{RequeueAfter: r.refused(ctx, d, err)}, nil
		default:
			return r.gone(req.Name, fmt.Errorf("patching node: %w", err))
		}
	}
	return reconcile.Result{}, errors.New("patching node: its taints changed during every attempt")
}

// decision is a plan with what it was made from.
type decision struct {
	node     *noderule.Node
	verdicts []noderule.Verdict
	plan     *noderule.Plan
	patch    []byte
}

// read reads the node from the cache, or past it if nobody knows what became of a write. What it
// refers to is the cache's own, and not to be changed.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName, obj *corev1.Node) error {
	if doubt, _ := r.Allotment.Doubts(key.Name); !doubt {
		return r.Client.Get(ctx, key, obj, client.UnsafeDisableDeepCopy)
	}
	if err := r.Live.Get(ctx, key, obj); err != nil {
		return err
	}
	r.Allotment.Resolve(r.stripped(obj))
	return nil
}

// stripped is the node as the cache has it.
func (r *Reconciler) stripped(obj *corev1.Node) *corev1.Node {
	stripped, err := r.Strip(obj)
	if err != nil {
		return obj
	}
	return stripped.(*corev1.Node)
}

// later asks for another look when time alone may change the decision.
func (r *Reconciler) later(d decision, now time.Time) reconcile.Result {
	var due time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for i := range d.verdicts {
		sooner(d.verdicts[i].Until)
		if d.verdicts[i].Cause == noderule.CauseLimit {
			sooner(now.Add(limitedRest))
		}
	}
	if doubt, until := r.Allotment.Doubts(d.node.Name); doubt {
		sooner(until)
	}
	if due.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(due.Sub(r.Clock.Now()), time.Millisecond)}
}

func (r *Reconciler) decide(ctx context.Context, obj *corev1.Node, now time.Time) (decision, error) {
	node := noderule.NodeOf(obj)
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return decision{}, err
	}
	if err := r.Owners.Enter(ctx, book); err != nil {
		return decision{}, err
	}
	verdicts := make([]noderule.Verdict, 0, len(book.Rules()))
	for _, rule := range book.Rules() {
		start := r.Clock.Now()
		verdict := noderule.Evaluate(rule, node, now)
		if verdict.State != noderule.NotSelected {
			r.Metrics.evaluated(verdict, r.Clock.Since(start))
		}
		verdicts = append(verdicts, verdict)
	}
	if r.Allotment.Unsure(book, node, verdicts) {
		if err := r.Allotment.Survey(func(see func(*corev1.Node)) error { return r.everyNode(ctx, see) }); err != nil {
			log.FromContext(ctx).Error(err, "Rules with maxUnavailable take nobody away until all nodes could be read")
		}
	}
	r.Allotment.Limit(book, obj, verdicts)
	if waiting := noderule.Defer(verdicts, node); len(waiting) > 0 {
		r.Allotment.Limit(book, obj, waiting) // they give back what they were granted
	}
	d := decision{node: node, verdicts: verdicts, plan: noderule.PlanFor(node, verdicts, r.Owners.Taints(), now)}
	if !d.plan.Empty() {
		d.patch, err = jsonPatch(node, d.plan)
	}
	return d, err
}

// errOutdated is why a decision is not carried out.
var errOutdated = errors.New("not written: the rules have changed since it was decided")

// pageSize is how many nodes are read at a time: each can have dozens of kilobytes.
const pageSize = 200

// everyNode reads all nodes past the cache.
func (r *Reconciler) everyNode(ctx context.Context, see func(*corev1.Node)) error {
	for page, err := range paging.Pages(func(token string) (*corev1.NodeList, error) {
		page := &corev1.NodeList{}
		return page, r.Live.List(ctx, page, client.Limit(pageSize), client.Continue(token))
	}) {
		if err != nil {
			return fmt.Errorf("counting the nodes that are away: %w", err)
		}
		for i := range page.Items {
			see(r.stripped(&page.Items[i]))
		}
	}
	return nil
}

// write sends the patch of a decision about a node that was read before the given time.
func (r *Reconciler) write(ctx context.Context, d decision, read time.Time) error {
	if err := r.confirmGone(ctx, d.plan.Swept, read); err != nil {
		r.Allotment.Failed(d.node.Name)
		return err
	}
	if !r.Allotment.Send(d.node, d.plan) {
		r.Allotment.Failed(d.node.Name)
		return errOutdated
	}
	written, err := send(ctx, r.Client, d.node.Name, d.patch)
	switch {
	case err == nil:
		r.Allotment.Written(d.node.Name, func() *corev1.Node { return r.stripped(written) })
	case isSure(err):
		r.Allotment.Failed(d.node.Name)
	default:
		r.Allotment.Doubt(d.node, d.plan)
	}
	return err
}

// announce tells of a plan that was applied.
func (r *Reconciler) announce(ctx context.Context, d decision) {
	now := r.Clock.Now()
	r.record(d.node, d.plan.Changes)
	r.recordDeadlines(d, now)
	told := make([]string, len(d.plan.Changes))
	for i, change := range d.plan.Changes {
		told[i] = string(change.Kind) + " " + change.Taint.String() + " by " + change.Rule
		if !slices.Contains(d.plan.Swept, change.UID) { // series of a rule that is gone would stay
			r.Metrics.changed(d, change, now)
		}
	}
	log.FromContext(ctx).Info("Node changed", "changes", told) // one line a write: each costs
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
	before := r.Failures.Record(d.node.Name, Failure{Reason: reason, Message: err.Error(), At: r.Clock.Now(), Rules: rules})
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
	r.Allotment.Absent(node)
	r.Metrics.unlistedNodes.Add(r.unlisted.forget(node))
	return reconcile.Result{}, nil
}
