package quota

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Allocator grants what rules with maxUnavailable may take away. It is safe for concurrent use.
type Allocator struct {
	nodes func() iter.Seq[*corev1.Node]
	late  func() time.Time
	clock clock.PassiveClock
	// unanswered is for how long a write without an answer may still happen.
	unanswered time.Duration

	mu     sync.Mutex
	book   *noderule.Rulebook
	quotas map[types.UID]*noderule.Quota
	// latest are the newest states that were seen, by node: of events, of the cache, which has
	// them before, and of our own writes, before either.
	latest map[string]state
	// sending are the rules whose taints a write under way puts on, by node.
	sending map[string]taking
	// doubts are writes that got no answer, by node.
	doubts map[string]doubt
	// surveys are those of the rules with a quota: see Survey.
	surveys map[types.UID]*survey
	// buried are nodes that are gone, and since when: a state of one may still come late.
	buried map[types.UID]time.Time

	surveying sync.Mutex
}

// doubt is a write that got no answer: until when it may still happen, and what it does then.
type doubt struct {
	until time.Time
	taking
}

// taking are the rules whose taints a write puts on a node, each with the states of the node that it was
// decided from: one that was not in use then is not taken away.
type taking map[types.UID][]*noderule.Node

// from says whether the write takes the node away from those who use it, for the rule as it is now.
func (t taking) from(rule *noderule.Rule) bool {
	return slices.ContainsFunc(t[rule.UID], func(node *noderule.Node) bool { return noderule.InUse(rule, node) })
}

// survey is done when a quota counts what the API server had after it was made.
type survey struct{ done bool }

// burial is how long a late state of a node that is gone is waited for.
const burial = 10 * time.Minute

// state is a node at a version.
type state struct {
	version string
	node    *noderule.Node
}

// New makes an allocator. Nodes are all nodes that the cache has. Late is until when a write of
// whoever led before may still happen: before that, no survey shows all. Unanswered is for how long a
// write without an answer may still happen.
func New(nodes func() iter.Seq[*corev1.Node], late func() time.Time, unanswered time.Duration, clock clock.PassiveClock) *Allocator {
	return &Allocator{nodes: nodes, late: late, unanswered: unanswered, clock: clock, quotas: map[types.UID]*noderule.Quota{}, latest: map[string]state{},
		sending: map[string]taking{}, doubts: map[string]doubt{}, surveys: map[types.UID]*survey{}, buried: map[types.UID]time.Time{}}
}

// Unsure says whether one of the verdicts would take the node away and the cache may not show all
// that is away: what was written by whoever led before, or by us before there was a limit. Only
// Survey tells, and before that nothing is granted.
func (a *Allocator) Unsure(book *noderule.Rulebook, node *noderule.Node, verdicts []noderule.Verdict) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	for i := range verdicts {
		if uid := verdicts[i].Rule.UID; a.quotas[uid] != nil && !a.surveys[uid].done && verdicts[i].Takes(node) {
			return true
		}
	}
	return false
}

// Survey takes in all nodes as the API server has them now. Read must read past any cache.
func (a *Allocator) Survey(read func(see func(*corev1.Node)) error) error {
	a.surveying.Lock()
	defer a.surveying.Unlock()
	due := a.unsurveyed()
	if len(due) == 0 || a.clock.Now().Before(a.late()) {
		return nil // somebody else just did, or it would be too early
	}
	err := read(func(node *corev1.Node) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.take(node)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range due {
		s.done = true // of a rule that has lost its limit meanwhile, nobody looks at it again
	}
	return nil
}

func (a *Allocator) unsurveyed() []*survey {
	a.mu.Lock()
	defer a.mu.Unlock()
	var due []*survey
	for _, s := range a.surveys {
		if !s.done {
			due = append(due, s)
		}
	}
	return due
}

// See takes a state of a node in. It returns the nodes that may be taken away now and wait for
// it: somebody has to look at them again.
func (a *Allocator) See(book *noderule.Rulebook, node *corev1.Node) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	a.take(node)
	return a.next()
}

// Gone forgets a node, and returns what See does.
func (a *Allocator) Gone(node *corev1.Node) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bury(node.UID)
	if known, ok := a.latest[node.Name]; ok && known.node.UID != node.UID {
		return nil // another one has its name by now
	}
	for _, quota := range a.quotas {
		quota.Forget(node.Name)
	}
	delete(a.latest, node.Name)
	delete(a.doubts, node.Name)
	return a.next()
}

func (a *Allocator) bury(uid types.UID) {
	now := a.clock.Now()
	for old, at := range a.buried {
		if now.Sub(at) > burial {
			delete(a.buried, old)
		}
	}
	a.buried[uid] = now
}

// Absent says that the API server has no node of this name: whatever was written of one can happen no
// more, as every write names the one that it is for.
func (a *Allocator) Absent(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.doubts, node)
	for _, quota := range a.quotas {
		quota.Return(node)
	}
}

// Doubts says whether nobody knows what became of a write of the node, and until when it may
// still happen. After that a state that was read past the cache tells: see Resolve.
func (a *Allocator) Doubts(node string) (doubted bool, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, doubted := a.doubts[node]
	return doubted, d.until
}

// Resolve ends a doubt with a state of the node that was read past the cache after it could
// still have happened.
func (a *Allocator) Resolve(node *corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d, doubted := a.doubts[node.Name]; !doubted || a.clock.Now().Before(d.until) {
		return
	}
	delete(a.doubts, node.Name)
	for _, quota := range a.quotas {
		quota.Return(node.Name)
	}
	a.take(node)
}

// take takes a state of a node in, if it is a new one.
func (a *Allocator) take(node *corev1.Node) {
	if len(a.quotas) == 0 || !a.newer(node) {
		return
	}
	view, now := noderule.NodeOf(node), a.clock.Now()
	for uid, quota := range a.quotas {
		rule := a.book.Rule(uid)
		quota.See(view, wants(rule, view, now))
		if a.doubts[node.Name].from(rule) {
			quota.Grant(node.Name)
		}
	}
}

// Limit changes the verdicts on a state of a node that would take it away and may not. What is
// left of them is granted: whoever does not write it must say so.
func (a *Allocator) Limit(book *noderule.Rulebook, obj *corev1.Node, verdicts []noderule.Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow(book)
	if len(a.quotas) == 0 {
		return
	}
	if _, gone := a.buried[obj.UID]; gone {
		return // nothing can be written
	}
	a.take(obj) // so that only newer states can follow, which show what becomes of the write
	node := noderule.NodeOf(obj)
	_, doubted := a.doubts[node.Name]
	for i := range verdicts {
		quota := a.quotas[verdicts[i].Rule.UID]
		if quota == nil {
			continue
		}
		verdict := verdicts[i]
		verdict.Rule = a.book.Rule(verdict.Rule.UID) // that of an older book may know no limit
		takes := verdict.Takes(node)
		quota.Want(node.Name, takes)
		switch {
		case takes && (!a.surveys[verdict.Rule.UID].done || !quota.Take(node.Name)):
			verdicts[i].Limit()
		case !takes && !doubted:
			quota.Return(node.Name)
		}
	}
}

// Send says that a plan for the node is about to be written, and counts until it is known what
// became of it, whether or not there is a limit yet. It returns false if the rules have changed
// since the plan was made, and it would take away what may not be: then it must not be written.
func (a *Allocator) Send(node *noderule.Node, plan *noderule.Plan) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	takes := taking{}
	for _, change := range plan.Changes {
		if change.Kind != noderule.Added {
			continue
		}
		if quota := a.quotas[change.UID]; quota != nil && quota.Uses(node.Name) && !quota.Counts(node.Name) {
			return false
		}
		takes[change.UID] = []*noderule.Node{node}
	}
	if len(takes) > 0 {
		a.sending[node.Name] = takes
	}
	return true
}

// Written says that a write of the node succeeded, and what it made of it, for which it asks only
// where there is a limit.
func (a *Allocator) Written(node string, made func() *corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sending, node)
	if len(a.quotas) > 0 {
		a.take(made())
	}
}

// Failed says that a write of the node failed for sure.
func (a *Allocator) Failed(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sending, node)
	if _, doubted := a.doubts[node]; doubted {
		return // an earlier one may still happen
	}
	for _, quota := range a.quotas {
		quota.Return(node)
	}
}

// Refused says that the API server will not let the node be written for a while: others go first.
func (a *Allocator) Refused(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, quota := range a.quotas {
		if _, doubted := a.doubts[node]; !doubted {
			quota.Return(node)
		}
		quota.Want(node, false)
	}
}

// Doubt says that nobody knows what became of this plan for the node.
func (a *Allocator) Doubt(node *noderule.Node, plan *noderule.Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sending, node.Name)
	takes := maps.Clone(a.doubts[node.Name].taking)
	for _, change := range plan.Changes {
		if quota := a.quotas[change.UID]; change.Kind == noderule.Added && (quota == nil || quota.Counts(node.Name)) {
			if takes == nil {
				takes = taking{}
			}
			takes[change.UID] = append(slices.Clone(takes[change.UID]), node)
		}
	}
	if len(takes) > 0 {
		a.doubts[node.Name] = doubt{until: a.clock.Now().Add(a.unanswered), taking: takes}
	}
}

// follow makes the quotas those of the rulebook. Rules that changed are counted anew, from all
// nodes; what was granted stays so.
func (a *Allocator) follow(book *noderule.Rulebook) {
	if book == a.book || a.book != nil && a.book.Number > book.Number {
		return // a worker that was slow has an older one
	}
	a.book = book
	quotas, surveys := map[types.UID]*noderule.Quota{}, map[types.UID]*survey{}
	for _, rule := range book.Rules() {
		if rule.MaxUnavailable == nil || !rule.Active() {
			continue
		}
		quotas[rule.UID] = noderule.NewQuota(rule)
		if surveys[rule.UID] = a.surveys[rule.UID]; surveys[rule.UID] == nil {
			surveys[rule.UID] = &survey{}
		}
	}
	before := a.quotas
	a.quotas, a.surveys = quotas, surveys
	if len(quotas) == 0 {
		clear(a.latest)
		return
	}
	for node := range a.nodes() {
		a.newer(node)
	}
	for uid, quota := range quotas {
		a.fill(uid, quota)
		quota.Inherit(before[uid])
	}
}

// fill makes a quota count all nodes, and what may be under way.
func (a *Allocator) fill(uid types.UID, quota *noderule.Quota) {
	rule, now := a.book.Rule(uid), a.clock.Now()
	for _, s := range a.latest {
		quota.See(s.node, wants(rule, s.node, now))
	}
	for node, d := range a.doubts {
		if d.from(rule) {
			quota.Grant(node)
		}
	}
	for node, takes := range a.sending {
		if takes.from(rule) {
			quota.Grant(node)
		}
	}
}

// newer says whether this is the newest state of the node so far, and remembers it.
func (a *Allocator) newer(node *corev1.Node) bool {
	if _, gone := a.buried[node.UID]; gone {
		return false
	}
	if known, ok := a.latest[node.Name]; ok {
		switch order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, known.version); {
		case err == nil && order < 0:
			return false
		case err == nil && order == 0:
			return true // the same: it need not be kept twice
		}
	}
	a.latest[node.Name] = state{version: node.ResourceVersion, node: noderule.NodeOf(node)}
	return true
}

func (a *Allocator) next() []string {
	var next []string
	for _, quota := range a.quotas {
		next = append(next, quota.Offer()...)
	}
	return next
}

func wants(rule *noderule.Rule, node *noderule.Node, now time.Time) bool {
	verdict := noderule.Evaluate(rule, node, now)
	return verdict.Takes(node)
}
