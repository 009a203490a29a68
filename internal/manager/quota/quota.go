package quota

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Reader reads nodes. All nodes are reduced as in the cache.
type Reader interface {
	// Cached returns a node from the cache, and Live from the API server.
	Cached(ctx context.Context, name string) (*corev1.Node, error)
	Live(ctx context.Context, name string) (*corev1.Node, error)
	// All are the nodes of the cache, and List lists the nodes of the API server.
	All() iter.Seq[*corev1.Node]
	List(ctx context.Context, each func(*corev1.Node)) error
	// Reduce reduces a node that a write returned.
	Reduce(*corev1.Node) *corev1.Node
}

// Fence has the times of the leader election that the allocator depends on.
type Fence interface {
	// PredecessorUntil is the end of the time in which writes of the previous leader may still take effect.
	PredecessorUntil() time.Time
	// UnansweredTimeout is how long a write without a response may still take effect.
	UnansweredTimeout() time.Duration
}

// Allocator grants which nodes rules with maxUnavailable may hold. It is safe for concurrent use.
//
// A reconcile calls Read, Reserve and then, on the reservation, Commit or Abort. Handlers of node events call Observe
// and Forget.
type Allocator struct {
	reader Reader
	fence  Fence
	clock  clock.PassiveClock

	mu     sync.Mutex
	book   *noderule.Rulebook
	quotas map[types.UID]*noderule.Quota
	// counted has an entry per rule with a quota: whether the quota counts all nodes of the API server.
	counted map[types.UID]*bool
	// latest are the newest known states, by node: of events, of the cache, and of own writes.
	latest map[string]state
	// inFlight are the rules whose taints a write in flight adds, by node, and unanswered the writes that failed
	// without a response.
	inFlight   map[string]additions
	unanswered map[string]unanswered
	// deleted are nodes that do not exist anymore, and since when: an outdated state may still arrive.
	deleted map[types.UID]time.Time

	listing sync.Mutex
}

// unanswered is a write that failed without a response: until when it may still take effect, and what it adds.
type unanswered struct {
	until time.Time
	additions
}

// additions are the rules whose taints a write adds to a node, each with the states of the node that the write was
// decided from: a node that was not in use then does not count.
type additions map[types.UID][]*noderule.Node

// takes reports whether the write taints a node in use, for the current version of the rule.
func (a additions) takes(rule *noderule.Rule) bool {
	return slices.ContainsFunc(a[rule.UID], func(node *noderule.Node) bool { return noderule.InUse(rule, node) })
}

// deletedTimeout is how long an outdated state of a deleted node may arrive.
const deletedTimeout = 10 * time.Minute

// state is a node at a resource version.
type state struct {
	version string
	node    *noderule.Node
}

// New returns an allocator.
func New(reader Reader, fence Fence, clock clock.PassiveClock) *Allocator {
	return &Allocator{reader: reader, fence: fence, clock: clock, quotas: map[types.UID]*noderule.Quota{}, counted: map[types.UID]*bool{},
		latest: map[string]state{}, inFlight: map[string]additions{}, unanswered: map[string]unanswered{}, deleted: map[types.UID]time.Time{}}
}

// Read returns the node from the cache, or from the API server if live is true or a write of it has no response. Once
// such a write can no longer take effect, the state of the node shows whether it did.
func (a *Allocator) Read(ctx context.Context, name string, live bool) (*corev1.Node, error) {
	pending := a.retryAt(name)
	if pending.IsZero() && !live {
		node, err := a.reader.Cached(ctx, name)
		if apierrors.IsNotFound(err) {
			a.notFound(name)
		}
		return node, err
	}
	asked := a.clock.Now()
	node, err := a.reader.Live(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		a.notFound(name)
	case err == nil && !pending.IsZero() && !asked.Before(pending):
		a.resolve(node, pending)
	}
	return node, err
}

// retryAt is when a write of the node without a response can no longer take effect; zero if there is none.
func (a *Allocator) retryAt(node string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unanswered[node].until
}

// resolve ends a write without a response, with a state of the node from after it could take effect.
func (a *Allocator) resolve(node *corev1.Node, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.unanswered[node.Name].until.Equal(until) {
		return // another write has no response now
	}
	a.settle(node.Name)
	a.take(node)
}

// notFound records that the node does not exist: no write of it can take effect, because each names the UID of the node.
func (a *Allocator) notFound(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(node)
}

// settle removes a write without a response, the grants of the node, and its place among those that wait.
func (a *Allocator) settle(node string) {
	delete(a.unanswered, node)
	for _, quota := range a.quotas {
		quota.Return(node)
		quota.Want(node, false)
	}
}

// Observe records a state of a node. It returns the nodes that wait and may be held now: the caller requeues them.
func (a *Allocator) Observe(book *noderule.Rulebook, node *corev1.Node) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	a.take(node)
	return a.offer()
}

// Forget removes a deleted node, and returns what Observe does.
func (a *Allocator) Forget(node *corev1.Node) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	for uid, at := range a.deleted {
		if now.Sub(at) > deletedTimeout {
			delete(a.deleted, uid)
		}
	}
	a.deleted[node.UID] = now
	if known, ok := a.latest[node.Name]; ok && known.node.UID != node.UID {
		return nil // another node has this name now
	}
	for _, quota := range a.quotas {
		quota.Forget(node.Name)
	}
	delete(a.latest, node.Name)
	delete(a.unanswered, node.Name)
	return a.offer()
}

// Reservation holds what the allocator granted for one state of a node. The caller ends it with Commit or Abort.
type Reservation struct {
	allocator *Allocator
	node      *noderule.Node
	// RetryAt is when a write of the node without a response can no longer take effect; zero if there is none.
	RetryAt time.Time
}

// Reserve limits the verdicts that would hold a node although maxUnavailable is reached, and then applies dependsOn.
// The reservation is valid also with an error, which is that of listing all nodes: until that succeeds, no node in use
// is held.
func (a *Allocator) Reserve(ctx context.Context, book *noderule.Rulebook, obj *corev1.Node, e *noderule.Evaluation) (*Reservation, error) {
	var err error
	if a.mustCount(book, e) {
		err = a.count(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	a.limit(obj, e, nil)
	if waiting := e.ApplyDependencies(); len(waiting) > 0 {
		a.limit(obj, e, waiting) // these verdicts return their grants
	}
	return &Reservation{allocator: a, node: e.Node, RetryAt: a.unanswered[e.Node.Name].until}, err
}

// mustCount reports whether a verdict would hold a node in use while the quota does not count all nodes: the cache may
// lack writes of the previous leader, or own writes from before the rule had a limit.
func (a *Allocator) mustCount(book *noderule.Rulebook, e *noderule.Evaluation) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	return slices.ContainsFunc(e.Verdicts, func(v noderule.Verdict) bool {
		return a.quotas[v.Rule.UID] != nil && !*a.counted[v.Rule.UID] && v.Takes()
	})
}

// count lists all nodes, once for all rules that need it, and not before the writes of the previous leader have ended.
func (a *Allocator) count(ctx context.Context) error {
	a.listing.Lock()
	defer a.listing.Unlock()
	var due []*bool
	a.mu.Lock()
	for _, counted := range a.counted {
		if !*counted {
			due = append(due, counted)
		}
	}
	a.mu.Unlock()
	if len(due) == 0 || a.clock.Now().Before(a.fence.PredecessorUntil()) {
		return nil
	}
	err := a.reader.List(ctx, func(node *corev1.Node) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.take(node)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, counted := range due {
		*counted = true
	}
	return nil
}

// limit changes the verdicts that would hold a node and may not, and grants the others. Only: the verdicts to limit;
// nil: all.
func (a *Allocator) limit(obj *corev1.Node, e *noderule.Evaluation, only []int) {
	if len(a.quotas) == 0 {
		return
	}
	if _, deleted := a.deleted[obj.UID]; deleted {
		return // no write can take effect
	}
	a.take(obj) // so that only newer states follow, which show the result of the write
	name := e.Node.Name
	_, pending := a.unanswered[name]
	for i := range e.Verdicts {
		v := &e.Verdicts[i]
		quota := a.quotas[v.Rule.UID]
		if quota == nil || only != nil && !slices.Contains(only, i) {
			continue
		}
		rule := a.book.Rule(v.Rule.UID) // the evaluation may be of an older rulebook, in which the rule has no limit
		takes := v.State == noderule.Held && noderule.Takes(rule, e.Node)
		quota.Want(name, takes)
		switch {
		case takes && (!*a.counted[rule.UID] || !quota.Take(name)):
			v.Limit()
		case !takes && !pending:
			quota.Return(name)
		}
	}
}

// Outcome is the result of a write.
type Outcome int

const (
	// Written means that the write succeeded.
	Written Outcome = iota
	// NotWritten means that the write failed and cannot take effect.
	NotWritten
	// NotFound means that the node does not exist.
	NotFound
	// Unanswered means that the write failed without a conclusive response: it may still take effect.
	Unanswered
)

// Commit sends a plan with the given function, and counts it until its result is known, whether or not the rule has a
// limit yet. It returns false, and does not send, if the rules have changed since Reserve and the plan would hold a node
// that may not be held.
func (r *Reservation) Commit(plan *noderule.Plan, send func() (*corev1.Node, Outcome)) bool {
	if !r.begin(plan) {
		return false
	}
	node, outcome := send()
	r.end(plan, node, outcome)
	return true
}

func (r *Reservation) begin(plan *noderule.Plan) bool {
	a := r.allocator
	a.mu.Lock()
	defer a.mu.Unlock()
	adds := additions{}
	for _, change := range plan.Changes {
		if change.Kind != noderule.Added {
			continue
		}
		if quota := a.quotas[change.UID]; quota != nil && quota.Uses(r.node.Name) && !quota.Counts(r.node.Name) {
			return false
		}
		adds[change.UID] = []*noderule.Node{r.node}
	}
	if len(adds) > 0 {
		a.inFlight[r.node.Name] = adds
	}
	return true
}

func (r *Reservation) end(plan *noderule.Plan, written *corev1.Node, outcome Outcome) {
	a, name := r.allocator, r.node.Name
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.inFlight, name)
	switch outcome {
	case Written:
		if len(a.quotas) > 0 {
			a.take(a.reader.Reduce(written))
		}
	case NotWritten:
		a.returnGrants(name)
	case NotFound:
		a.settle(name)
	case Unanswered:
		a.recordUnanswered(r.node, plan)
	}
}

// recordUnanswered counts a plan until it can no longer take effect.
func (a *Allocator) recordUnanswered(node *noderule.Node, plan *noderule.Plan) {
	adds := additions{}
	for uid, states := range a.unanswered[node.Name].additions {
		adds[uid] = states
	}
	for _, change := range plan.Changes {
		if quota := a.quotas[change.UID]; change.Kind == noderule.Added && (quota == nil || quota.Counts(node.Name)) {
			adds[change.UID] = append(slices.Clone(adds[change.UID]), node)
		}
	}
	if len(adds) > 0 {
		a.unanswered[node.Name] = unanswered{until: a.clock.Now().Add(a.fence.UnansweredTimeout()), additions: adds}
	}
}

// Abort returns the grants of a node that is not written, or whose write the API server rejects, so that other nodes
// can use them. It may be called after Commit.
func (r *Reservation) Abort() {
	a := r.allocator
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returnGrants(r.node.Name)
	for _, quota := range a.quotas {
		quota.Want(r.node.Name, false)
	}
}

// returnGrants returns the grants of a node, unless an earlier write may still take effect.
func (a *Allocator) returnGrants(node string) {
	if _, pending := a.unanswered[node]; pending {
		return
	}
	for _, quota := range a.quotas {
		quota.Return(node)
	}
}

// follow makes the quotas those of the rulebook. Rules that changed are counted again, from all nodes; grants stay.
func (a *Allocator) follow(book *noderule.Rulebook) {
	if book == a.book || a.book != nil && a.book.Number > book.Number {
		return // a slow worker has an older rulebook
	}
	a.book = book
	quotas, counted := map[types.UID]*noderule.Quota{}, map[types.UID]*bool{}
	for _, rule := range book.Rules() {
		if rule.MaxUnavailable == nil || !rule.Active() {
			continue
		}
		quotas[rule.UID] = noderule.NewQuota(rule)
		if counted[rule.UID] = a.counted[rule.UID]; counted[rule.UID] == nil {
			counted[rule.UID] = new(bool)
		}
	}
	before := a.quotas
	a.quotas, a.counted = quotas, counted
	if len(quotas) == 0 {
		clear(a.latest)
		return
	}
	for node := range a.reader.All() {
		a.newest(node)
	}
	for uid, quota := range quotas {
		a.fill(uid, quota)
		quota.Inherit(before[uid])
	}
}

// fill makes a quota count all nodes, and writes whose result is not known.
func (a *Allocator) fill(uid types.UID, quota *noderule.Quota) {
	rule, now := a.book.Rule(uid), a.clock.Now()
	for _, s := range a.latest {
		quota.Observe(s.node, now)
	}
	for node, u := range a.unanswered {
		if u.takes(rule) {
			quota.Grant(node)
		}
	}
	for node, adds := range a.inFlight {
		if adds.takes(rule) {
			quota.Grant(node)
		}
	}
}

// take records a state of a node, if it is not older than the known one.
func (a *Allocator) take(node *corev1.Node) {
	if len(a.quotas) == 0 || !a.newest(node) {
		return
	}
	view, now := noderule.NodeOf(node), a.clock.Now()
	for uid, quota := range a.quotas {
		quota.Observe(view, now)
		if a.unanswered[node.Name].takes(a.book.Rule(uid)) {
			quota.Grant(node.Name)
		}
	}
}

// newest reports whether no newer state of the node is known, and records it.
func (a *Allocator) newest(node *corev1.Node) bool {
	if _, deleted := a.deleted[node.UID]; deleted {
		return false
	}
	if known, ok := a.latest[node.Name]; ok {
		switch order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, known.version); {
		case err == nil && order < 0:
			return false
		case err == nil && order == 0:
			return true // the same state
		}
	}
	a.latest[node.Name] = state{version: node.ResourceVersion, node: noderule.NodeOf(node)}
	return true
}

func (a *Allocator) offer() []string {
	var next []string
	for _, quota := range a.quotas {
		next = append(next, quota.Offer()...)
	}
	return next
}
