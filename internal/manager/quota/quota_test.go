package quota_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/quota"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const taintKey = "readiness.k8s.io/NetworkReady"

// requestTimeout is that of the API server, and unanswered is how long a write without a response may still take effect.
const (
	requestTimeout = 3 * time.Minute
	unanswered     = requestTimeout + 10*time.Second
)

// fleet is an API server with nodes, and a manager with a stale cache.
type fleet struct {
	t       *testing.T
	random  *rand.Rand
	clock   *clocktesting.FakePassiveClock
	rule    *v1alpha1.NodeReadinessRule
	book    *noderule.Rulebook
	version int // begins at a number so large that versions compare as text
	books   int // number of rulebooks
	joins   int // number of nodes that reuse the name of an earlier one

	truth map[string]*corev1.Node
	// cache is the cache of the manager, and events are the events that it has not received, oldest first. The cache has
	// an event before the event handlers are called; handled are the events in between.
	cache   map[string]*corev1.Node
	events  []*corev1.Node
	handled []*corev1.Node
	// written has the states of the manager's own writes.
	written map[string]*corev1.Node
	// sending has the writes in flight, at most one per node, and late those without a response that have not taken
	// effect yet.
	sending map[string]late
	late    []late

	// away has the held nodes that were in use before. A new node does not count, even if it is in use when the write
	// takes effect.
	away map[string]bool

	allocator *quota.Allocator
	// predecessorUntil is the end of the time in which writes of another manager may still take effect.
	predecessorUntil    time.Time
	taken, limited, all int
	// reduced counts the calls of Reduce.
	reduced int
}

// late is a write in flight, or one without a response.
type late struct {
	reservation *quota.Reservation
	node        *noderule.Node
	plan        *noderule.Plan
	ends        time.Time
}

// Cached, Live, All, List and Reduce make the fleet the reader of the allocator.
func (f *fleet) Cached(_ context.Context, name string) (*corev1.Node, error) {
	return f.read(name), nil
}

func (f *fleet) Live(_ context.Context, name string) (*corev1.Node, error) {
	if node := f.truth[name]; node != nil {
		return node, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
}

func (f *fleet) All() iter.Seq[*corev1.Node] { return maps.Values(f.cache) }

func (f *fleet) List(_ context.Context, each func(*corev1.Node)) error {
	for _, node := range f.truth {
		each(node)
	}
	return nil
}

func (f *fleet) Reduce(node *corev1.Node) *corev1.Node {
	f.reduced++
	return node
}

// PredecessorUntil and UnansweredTimeout make it the fence.
func (f *fleet) PredecessorUntil() time.Time { return f.predecessorUntil }

func (f *fleet) UnansweredTimeout() time.Duration { return unanswered }

func newFleet(t *testing.T, seed uint64, limit string) *fleet {
	f := &fleet{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), clock: clocktesting.NewFakePassiveClock(noon),
		version: 100_000, truth: map[string]*corev1.Node{}, away: map[string]bool{}, sending: map[string]late{},
		rule: &v1alpha1.NodeReadinessRule{
			ObjectMeta: metav1.ObjectMeta{Name: "net", UID: "8f0e3c4a-0000-4000-8000-000000000001", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
			Spec: v1alpha1.NodeReadinessRuleSpec{
				Conditions:      []v1alpha1.ConditionRequirement{{Type: "NetworkReady", RequiredStatus: corev1.ConditionTrue}},
				EnforcementMode: v1alpha1.EnforcementModeContinuous,
				Taint:           v1alpha1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoSchedule},
				NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"role": "worker"}},
				MaxUnavailable:  ptr.To(intstr.Parse(limit)),
			},
		},
	}
	f.turnPage()
	for i := range 8 {
		f.join(fmt.Sprintf("n%d", i), noon.Add(-time.Hour))
	}
	f.startManager()
	return f
}

// startManager starts a manager with the cache of a standby, which may be stale. The previous manager may have crashed
// with writes in flight. A manager that stops while a write has no response does not release its lease, so the next one
// waits.
func (f *fleet) startManager() {
	if f.random.IntN(2) == 0 { // the previous manager stops, and waits for its writes
		for len(f.sending) > 0 {
			f.answerOne()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.sending)) {
		f.late = append(f.late, f.sending[name])
	}
	clear(f.sending)
	if f.predecessorUntil = (time.Time{}); len(f.late) > 0 {
		f.predecessorUntil = f.clock.Now().Add(requestTimeout)
	}
	if f.cache == nil {
		f.cache, f.events = maps.Clone(f.truth), nil
	}
	f.handled, f.written = nil, map[string]*corev1.Node{}
	f.allocator = quota.New(f, f, f.clock)
}

func (f *fleet) join(name string, created time.Time) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(name, "-", f.joins)), CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{"role": "worker"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: "NetworkReady", Status: corev1.ConditionTrue}}
	f.write(node)
}

// write stores a state of a node, and queues its event.
func (f *fleet) write(node *corev1.Node) *corev1.Node {
	f.version++
	node.ResourceVersion = strconv.Itoa(f.version)
	f.truth[node.Name] = node
	f.events = append(f.events, node)
	return node
}

func (f *fleet) pick() *corev1.Node {
	names := slices.Sorted(maps.Keys(f.truth))
	return f.truth[names[f.random.IntN(len(names))]].DeepCopy()
}

// step runs one random action.
func (f *fleet) step() {
	switch f.random.IntN(28) {
	case 23, 24, 25, 26:
		f.answerOne()
	case 20:
		f.leave()
	case 21:
		f.relabel()
	case 22:
		if f.random.IntN(10) == 0 {
			f.resetLimit()
		}
	case 0, 1, 2, 3, 4:
		node := f.pick()
		node.Status.Conditions[1].Status = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[f.random.IntN(2)]
		f.write(node)
	case 5:
		node := f.pick()
		node.Status.Conditions[0].Status = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown}[f.random.IntN(2)]
		f.write(node)
	case 6:
		f.write(f.pick()) // a heartbeat
	case 7:
		if len(f.truth) < 12 {
			f.join(fmt.Sprintf("new%d", f.version), f.clock.Now())
		}
	case 8:
		f.clock.SetTime(f.clock.Now().Add(time.Duration(f.random.IntN(40)) * time.Second))
	case 9:
		f.lateWrite()
	case 10:
		if f.random.IntN(4) == 0 {
			f.startManager()
		}
	case 11:
		if f.random.IntN(10) == 0 {
			f.rule.Generation++
			f.turnPage()
		}
	case 12, 13, 14:
		for range 1 + len(f.events)/10 { // late, but with a bounded delay
			f.cacheOne()
		}
	case 15, 16:
		for range 1 + len(f.handled)/10 {
			f.handleOne()
		}
	default:
		f.reconcile()
	}
}

// leave deletes a node, and sometimes creates another one with its name.
func (f *fleet) leave() {
	if len(f.truth) < 6 {
		return
	}
	node := f.pick()
	delete(f.truth, node.Name)
	delete(f.away, node.Name)
	gone := node.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: f.clock.Now()} // marks the event of a deletion
	f.version++
	gone.ResourceVersion = strconv.Itoa(f.version)
	f.events = append(f.events, gone)
	if f.random.IntN(2) == 0 {
		f.joins++
		f.join(node.Name, f.clock.Now())
	}
}

// relabel removes the label that the rule selects from a node, or adds it again.
func (f *fleet) relabel() {
	node := f.pick()
	if _, labelled := node.Labels["role"]; labelled && f.random.IntN(3) == 0 {
		node.Labels = nil
	} else {
		node.Labels = map[string]string{"role": "worker"}
	}
	f.write(node)
}

// resetLimit removes the limit of the rule and sets it again, before a reconcile.
func (f *fleet) resetLimit() {
	limit := f.rule.Spec.MaxUnavailable
	f.rule.Generation++
	f.rule.Spec.MaxUnavailable = nil
	f.turnPage()
	f.allocator.Observe(f.book, f.pick())
	f.rule.Generation++
	f.rule.Spec.MaxUnavailable = limit
	f.turnPage()
}

// turnPage creates the next rulebook.
func (f *fleet) turnPage() {
	f.books++
	f.book = noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{f.rule})
	f.book.Number = f.books
}

// cacheOne delivers one event to the cache, and handleOne delivers one to the handlers.
func (f *fleet) cacheOne() {
	if len(f.events) > 0 {
		if event := f.events[0]; event.DeletionTimestamp != nil {
			delete(f.cache, event.Name)
			delete(f.written, event.Name)
		} else {
			f.cache[event.Name] = event
		}
		f.handled, f.events = append(f.handled, f.events[0]), f.events[1:]
	}
}

func (f *fleet) handleOne() {
	if len(f.handled) > 0 {
		if event := f.handled[0]; event.DeletionTimestamp != nil {
			f.allocator.Forget(event)
		} else {
			f.allocator.Observe(f.book, event)
		}
		f.handled = f.handled[1:]
	}
}

// read returns a node from the cache, own writes included.
func (f *fleet) read(name string) *corev1.Node {
	cached, written := f.cache[name], f.written[name]
	if written != nil && written.ResourceVersion > cached.ResourceVersion {
		return written
	}
	return cached
}

// reconcile reconciles a node as the manager does.
func (f *fleet) reconcile() {
	names := slices.Sorted(maps.Keys(f.cache))
	obj := f.read(names[f.random.IntN(len(names))])
	if _, busy := f.sending[obj.Name]; busy {
		return // a node has at most one reconcile at a time
	}
	obj, err := f.allocator.Read(f.t.Context(), obj.Name, false)
	if err != nil {
		return
	}
	r, plan := f.decideOn(f.book, obj)
	if r.limited {
		f.limited++
	}
	if !plan.Empty() && r.Begin(plan) {
		f.sending[obj.Name] = late{r.Reservation, r.node, plan, f.clock.Now().Add(requestTimeout)}
	}
}

// decided is a reservation, with the node that it is for and whether the rule was limited.
type decided struct {
	*quota.Reservation
	node    *noderule.Node
	limited bool
}

// decideOn evaluates the rules for a state of a node, reserves and plans.
func (f *fleet) decideOn(book *noderule.Rulebook, obj *corev1.Node) (decided, *noderule.Plan) {
	node := noderule.NodeOf(obj)
	e := book.Evaluate(node, f.clock.Now())
	r, err := f.allocator.Reserve(f.t.Context(), book, obj, e)
	if err != nil {
		f.t.Fatal(err)
	}
	return decided{r, node, e.Verdicts[0].Cause == noderule.CauseLimit}, e.Plan(nil)
}

// answerOne ends one of the writes in flight.
func (f *fleet) answerOne() {
	if len(f.sending) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(f.sending))
	name := names[f.random.IntN(len(names))]
	sent := f.sending[name]
	delete(f.sending, name)
	timedOut := !f.clock.Now().Before(sent.ends)
	switch outcome := f.random.IntN(8); {
	case outcome == 0: // rejected
		sent.reservation.End(sent.plan, nil, quota.NotWritten)
	case outcome == 1 || timedOut: // no response, and it takes effect later or never
		sent.reservation.End(sent.plan, nil, quota.Unanswered)
		f.late = append(f.late, sent)
	case outcome == 2: // it takes effect, without a response
		f.apply(sent.node, sent.plan)
		sent.reservation.End(sent.plan, nil, quota.Unanswered)
	default:
		f.end(sent)
	}
}

// end applies a write, and ends its reservation.
func (f *fleet) end(sent late) {
	if written := f.apply(sent.node, sent.plan); written != nil {
		f.written[sent.node.Name] = written
		sent.reservation.End(sent.plan, written, quota.Written)
	} else {
		sent.reservation.End(sent.plan, nil, quota.NotWritten)
	}
}

// lateWrite applies a write without a response, or drops it: the API server cancels it after its request timeout.
func (f *fleet) lateWrite() {
	if len(f.late) == 0 {
		return
	}
	i := f.random.IntN(len(f.late))
	l := f.late[i]
	f.late = slices.Delete(f.late, i, i+1)
	if f.clock.Now().Before(l.ends) {
		f.apply(l.node, l.plan)
	}
}

// apply writes the plan if the node has the taints that the plan was made for, as the API server does, and checks that
// not too many nodes in use are held.
func (f *fleet) apply(view *noderule.Node, plan *noderule.Plan) *corev1.Node {
	stored := f.truth[view.Name]
	if stored == nil || stored.UID != view.UID {
		return nil
	}
	now := stored.DeepCopy()
	if !slices.EqualFunc(now.Spec.Taints, view.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) }) {
		return nil
	}
	applied := plan.Apply(noderule.NodeOf(now))
	now.Spec.Taints, now.Annotations = applied.Taints, applied.Annotations
	f.write(now)
	for _, change := range plan.Changes {
		switch {
		case change.Kind == noderule.Added && used(view):
			f.taken++
			f.away[view.Name] = true
		case change.Kind == noderule.Removed:
			delete(f.away, view.Name)
		}
	}
	if limit := f.rule.Spec.MaxUnavailable.IntValue(); len(f.away) > limit {
		f.t.Fatalf("after %d steps %v are held: at most %d may be", f.all, slices.Sorted(maps.Keys(f.away)), limit)
	}
	return now
}

// used reports whether the node is in use: older than the rule, recorded as in use, or Ready and not held.
func used(node *noderule.Node) bool {
	ready := slices.ContainsFunc(node.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	remembered := slices.ContainsFunc(slices.Collect(maps.Keys(node.Annotations)), func(key string) bool { return strings.HasPrefix(key, v1alpha1.MemoryPrefix) })
	return node.Created.Before(noon) || remembered || ready && len(node.Taints) == 0
}

func (f *fleet) fleetNodes() iter.Seq[*noderule.Node] {
	return func(yield func(*noderule.Node) bool) {
		for _, node := range f.truth {
			if !yield(noderule.NodeOf(node)) {
				return
			}
		}
	}
}

// In no history of failures, crashes, late events and late writes, more nodes in use are held at a time than the rule
// allows.
func TestMaxUnavailableIsKeptInRandomHistories(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			f := newFleet(t, seed, strconv.Itoa(1+int(seed%3)))
			for f.all = range 10_000 {
				f.step()
			}
			if f.taken < 10 || f.limited < 10 {
				t.Errorf("only %d nodes were held and %d limited: the history is too short", f.taken, f.limited)
			}
			f.settle()
		})
	}
}

// settle delivers all events and writes: in the end as many nodes are held as maxUnavailable allows.
func (f *fleet) settle() {
	f.t.Helper()
	for range 5000 {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		for len(f.late) > 0 {
			f.lateWrite()
		}
		for len(f.sending) > 0 {
			f.answerOne()
		}
		f.cacheOne()
		f.handleOne()
		names := slices.Sorted(maps.Keys(f.cache))
		obj := f.read(names[f.random.IntN(len(names))])
		if f.truth[obj.Name] != nil {
			var err error
			if obj, err = f.allocator.Read(f.t.Context(), obj.Name, false); err != nil {
				f.t.Fatal(err)
			}
		}
		if r, plan := f.decideOn(f.book, obj); !plan.Empty() && r.Begin(plan) {
			f.end(late{reservation: r.Reservation, node: r.node, plan: plan})
		}
	}
	if s := noderule.Summarize(f.book.Rules()[0], f.fleetNodes(), f.clock.Now(), 0); s.Unsettled > 0 {
		f.t.Errorf("in the end %d nodes are not settled: %+v", s.Unsettled, s)
	}
}

// say sets the network condition of a node.
func (f *fleet) say(name string, status corev1.ConditionStatus) {
	node := f.truth[name].DeepCopy()
	node.Status.Conditions[1].Status = status
	f.write(node)
}

// decide reserves and plans for the current state of a node.
func (f *fleet) decide(book *noderule.Rulebook, name string) (decided, *noderule.Plan) {
	return f.decideOn(book, f.truth[name])
}

// holds reports whether the manager begins to hold the node.
func (f *fleet) holds(name string) (late, bool) {
	r, plan := f.decide(f.book, name)
	return late{reservation: r.Reservation, node: r.node, plan: plan}, !plan.Empty() && r.Begin(plan)
}

// unlimited is a fleet with a rule without a limit that is to hold all nodes.
func unlimited(t *testing.T) *fleet {
	f := newFleet(t, 0, "1")
	f.rule.Spec.MaxUnavailable = nil
	f.turnPage()
	for name := range f.truth {
		f.say(name, corev1.ConditionFalse)
	}
	return f
}

// limitTo gives the rule a limit.
func (f *fleet) limitTo(limit int) {
	f.rule.Generation++
	f.rule.Spec.MaxUnavailable = ptr.To(intstr.FromInt(limit))
	f.turnPage()
}

func TestAWriteInFlightCountsForANewLimit(t *testing.T) {
	f := unlimited(t)
	write, ok := f.holds("n0")
	if !ok {
		t.Fatal("n0 is not held, although the rule has no limit")
	}
	f.limitTo(1)
	if _, ok := f.holds("n1"); ok {
		t.Error("n1 is held while the write of n0 is in flight")
	}
	f.end(write)
	if _, ok := f.holds("n1"); ok {
		t.Error("n1 is held in addition to n0")
	}
}

// The response to a write is reduced only if a rule has a limit.
func TestAResponseIsReducedOnlyForALimit(t *testing.T) {
	f := unlimited(t)
	write, _ := f.holds("n0")
	write.reservation.End(write.plan, f.truth[write.node.Name], quota.Written)
	if f.reduced != 0 {
		t.Error("reduced without a limit")
	}
	f.limitTo(9)
	write, _ = f.holds("n1")
	write.reservation.End(write.plan, f.truth[write.node.Name], quota.Written)
	if f.reduced != 1 {
		t.Errorf("reduced %d times, want once", f.reduced)
	}
}

func TestAPlanOfAnOlderRulebookIsNotWritten(t *testing.T) {
	f := unlimited(t)
	older := f.book
	slow, stale := f.decide(older, "n1")
	f.limitTo(1)
	if _, ok := f.holds("n0"); !ok {
		t.Fatal("n0 is not held, although one node may be")
	}
	if slow.Begin(stale) {
		t.Error("n1 is held in addition to n0, by a plan from before the limit")
	}
	if r, plan := f.decide(older, "n2"); !plan.Empty() && r.Begin(plan) {
		t.Error("n2 is held by a worker with the older rulebook")
	}
}

func TestNoNodeIsHeldWhileWritesOfThePredecessorMayTakeEffect(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.predecessorUntil = f.clock.Now().Add(time.Minute)
	for name := range f.truth {
		f.say(name, corev1.ConditionFalse)
	}
	if _, plan := f.decide(f.book, "n0"); !plan.Empty() {
		t.Errorf("n0 is held: %+v", plan.Changes)
	}
	f.clock.SetTime(f.predecessorUntil)
	if _, plan := f.decide(f.book, "n0"); plan.Empty() {
		t.Error("n0 is not held, although no write of the predecessor can take effect anymore")
	}
}

func TestAnUnansweredWriteCountsWhileItMayTakeEffect(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.say("n0", corev1.ConditionFalse)
	f.say("n1", corev1.ConditionFalse)
	write, ok := f.holds("n0")
	if !ok {
		t.Fatal("n0 is not held, although one node may be")
	}
	write.reservation.End(write.plan, nil, quota.Unanswered)
	read := func() {
		t.Helper()
		if _, err := f.allocator.Read(t.Context(), "n0", false); err != nil {
			t.Fatal(err)
		}
	}
	f.clock.SetTime(f.clock.Now().Add(unanswered - time.Second))
	read()
	if _, plan := f.decide(f.book, "n1"); !plan.Empty() {
		t.Error("n1 is held while n0 may still be")
	}
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	read()
	if r, _ := f.decide(f.book, "n2"); !r.RetryAt.IsZero() {
		t.Error("n2 waits for a write")
	}
	if r, _ := f.decide(f.book, "n0"); !r.RetryAt.IsZero() {
		t.Error("the write still counts, although it can no longer take effect")
	}
}

func TestAbortedReservationDoesNotCount(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.say("n0", corev1.ConditionFalse)
	f.say("n1", corev1.ConditionFalse)
	r, plan := f.decide(f.book, "n0")
	if plan.Empty() {
		t.Fatal("n0 is not held, although one node may be")
	}
	r.Abort()
	if _, ok := f.holds("n1"); !ok {
		t.Error("n1 is not held, although n0 is not written")
	}
}

// A write of a deleted node cannot take effect, although it has no response.
func TestWriteOfADeletedNodeDoesNotCount(t *testing.T) {
	f := unlimited(t)
	write, ok := f.holds("n0")
	if !ok {
		t.Fatal("n0 is not held, although the rule has no limit")
	}
	deleted := f.truth["n0"]
	delete(f.truth, "n0")
	delete(f.cache, "n0")
	f.allocator.Forget(deleted)
	write.reservation.End(write.plan, nil, quota.Unanswered)
	if _, err := f.allocator.Read(t.Context(), "n0", false); !apierrors.IsNotFound(err) {
		t.Fatalf("n0: %v", err)
	}
	f.limitTo(1)
	if _, ok := f.holds("n1"); !ok {
		t.Error("n1 is not held: n0, which does not exist, has the only place")
	}
}

// If the API server has no such node, no earlier write without a response counts.
func TestAWriteOfANodeThatDoesNotExistEndsEarlierWrites(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.say("n0", corev1.ConditionFalse)
	f.say("n1", corev1.ConditionFalse)
	for _, outcome := range []quota.Outcome{quota.Unanswered, quota.NotFound} {
		write, ok := f.holds("n0")
		if !ok {
			t.Fatal("n0 is not held, although one node may be")
		}
		write.reservation.End(write.plan, nil, outcome)
	}
	if _, ok := f.holds("n1"); !ok {
		t.Error("n1 is not held: n0, which does not exist, has the only place")
	}
}

// A new node that is being held when the rule gets a limit is not in use.
func TestWriteOfANewNodeDoesNotCount(t *testing.T) {
	for name, end := range map[string]func(*fleet, late){
		"written":    (*fleet).end,
		"unanswered": func(_ *fleet, write late) { write.reservation.End(write.plan, nil, quota.Unanswered) },
	} {
		t.Run(name, func(t *testing.T) {
			f := unlimited(t)
			f.join("new", f.clock.Now().Add(time.Minute))
			node := f.truth["new"].DeepCopy()
			for i := range node.Status.Conditions {
				node.Status.Conditions[i].Status = corev1.ConditionFalse // not Ready either
			}
			f.write(node)
			write, ok := f.holds("new")
			if !ok {
				t.Fatal("the new node is not held")
			}
			f.limitTo(1)
			f.allocator.Observe(f.book, f.truth["n0"])
			f.rule.Spec.MaxUnavailable = ptr.To(intstr.FromInt(9)) // for the check of the fleet, which ignores when the limit was set
			end(f, write)
			if _, ok := f.holds("n0"); !ok {
				t.Error("n0 is not held: a node that was never in use has the only place")
			}
		})
	}
}
