package quota_test

import (
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// requestTimeout is that of the API server, and unanswered is for how long a write without an answer may
// still happen.
const (
	requestTimeout = 3 * time.Minute
	unanswered     = requestTimeout + 10*time.Second
)

// fleet is an API server with nodes, and a manager whose view of it is late.
type fleet struct {
	t       *testing.T
	random  *rand.Rand
	clock   *clocktesting.FakePassiveClock
	rule    *v1alpha1.NodeReadinessRule
	book    *noderule.Rulebook
	version int // begins at a number so large that versions compare as text
	books   int // that were made
	joins   int // of nodes whose name another one had before

	truth map[string]*corev1.Node
	// cache is what the manager has seen, and events what is on its way to it, oldest first. The
	// cache has an event before the manager's handlers are told of it.
	cache  map[string]*corev1.Node
	events []*corev1.Node
	told   []*corev1.Node
	// written are the states that the manager's own writes made.
	written map[string]*corev1.Node
	// sending are the writes under way, one of a node at a time, and late those that got no answer
	// and have not happened yet.
	sending map[string]late
	late    []late

	// away are the nodes that were in use when they were taken away. A new node does not count,
	// even if it comes into use before the write happens.
	away map[string]bool

	allocator *quota.Allocator
	// feared is until when writes of another manager may still happen.
	feared              time.Time
	taken, limited, all int
}

type late struct {
	node *noderule.Node
	plan *noderule.Plan
	ends time.Time
}

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

// startManager begins with what a standby has seen, which may be late. The one of before may have
// crashed with writes under way; and whoever stops while a write has no answer does not give its lease
// back. Then the next one knows that it has to wait.
func (f *fleet) startManager() {
	if f.random.IntN(2) == 0 { // it stops, and waits for what is under way
		for len(f.sending) > 0 {
			f.answerOne()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.sending)) {
		f.late = append(f.late, f.sending[name])
	}
	clear(f.sending)
	if f.feared = (time.Time{}); len(f.late) > 0 {
		f.feared = f.clock.Now().Add(requestTimeout)
	}
	if f.cache == nil {
		f.cache, f.events = maps.Clone(f.truth), nil
	}
	f.told, f.written = nil, map[string]*corev1.Node{}
	f.allocator = quota.New(func() iter.Seq[*corev1.Node] { return maps.Values(f.cache) }, func() time.Time { return f.feared }, unanswered, f.clock)
}

func (f *fleet) join(name string, created time.Time) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(name, "-", f.joins)), CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{"role": "worker"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: "NetworkReady", Status: corev1.ConditionTrue}}
	f.write(node)
}

// write stores a state of a node, and sends it on its way.
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

// step is one thing that happens.
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
			f.limitAnew()
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
		for range 1 + len(f.events)/10 { // late, and not more so all the time
			f.cacheOne()
		}
	case 15, 16:
		for range 1 + len(f.told)/10 {
			f.tellOne()
		}
	default:
		f.reconcile()
	}
}

// leave lets a node go, and sometimes another one come with its name.
func (f *fleet) leave() {
	if len(f.truth) < 6 {
		return
	}
	node := f.pick()
	delete(f.truth, node.Name)
	delete(f.away, node.Name)
	gone := node.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: f.clock.Now()} // that is how this cache tells
	f.version++
	gone.ResourceVersion = strconv.Itoa(f.version)
	f.events = append(f.events, gone)
	if f.random.IntN(2) == 0 {
		f.joins++
		f.join(node.Name, f.clock.Now())
	}
}

// relabel takes a node out of the rule's reach, or puts it back.
func (f *fleet) relabel() {
	node := f.pick()
	if _, labelled := node.Labels["role"]; labelled && f.random.IntN(3) == 0 {
		node.Labels = nil
	} else {
		node.Labels = map[string]string{"role": "worker"}
	}
	f.write(node)
}

// limitAnew takes the limit off the rule and puts it back, before anybody has looked.
func (f *fleet) limitAnew() {
	limit := f.rule.Spec.MaxUnavailable
	f.rule.Generation++
	f.rule.Spec.MaxUnavailable = nil
	f.turnPage()
	f.allocator.See(f.book, f.pick())
	f.rule.Generation++
	f.rule.Spec.MaxUnavailable = limit
	f.turnPage()
}

// turnPage makes the next rulebook.
func (f *fleet) turnPage() {
	f.books++
	f.book = noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{f.rule})
	f.book.Number = f.books
}

// cacheOne and tellOne let one event reach the cache, and then the handlers.
func (f *fleet) cacheOne() {
	if len(f.events) > 0 {
		if event := f.events[0]; event.DeletionTimestamp != nil {
			delete(f.cache, event.Name)
			delete(f.written, event.Name)
		} else {
			f.cache[event.Name] = event
		}
		f.told, f.events = append(f.told, f.events[0]), f.events[1:]
	}
}

func (f *fleet) tellOne() {
	if len(f.told) > 0 {
		if event := f.told[0]; event.DeletionTimestamp != nil {
			f.allocator.Gone(event)
		} else {
			f.allocator.See(f.book, event)
		}
		f.told = f.told[1:]
	}
}

// read is a node as the manager's client has it: from the cache, own writes included.
func (f *fleet) read(name string) *corev1.Node {
	cached, written := f.cache[name], f.written[name]
	if written != nil && written.ResourceVersion > cached.ResourceVersion {
		return written
	}
	return cached
}

// reconcile looks at a node as a manager does.
func (f *fleet) reconcile() {
	names := slices.Sorted(maps.Keys(f.cache))
	obj := f.read(names[f.random.IntN(len(names))])
	if _, busy := f.sending[obj.Name]; busy {
		return // one looks at a node at a time
	}
	if doubt, _ := f.allocator.Doubts(obj.Name); doubt {
		if f.truth[obj.Name] == nil {
			f.allocator.Absent(obj.Name)
			return
		}
		obj = f.truth[obj.Name]
		f.allocator.Resolve(obj)
	}
	node := noderule.NodeOf(obj)
	verdicts := f.book.Verdicts(node, f.clock.Now())
	f.limit(obj, node, verdicts)
	if verdicts[0].Cause == noderule.CauseLimit {
		f.limited++
	}
	plan := noderule.PlanFor(node, verdicts, nil, f.clock.Now())
	if plan.Empty() {
		return
	}
	if f.allocator.Send(node, plan) {
		f.sending[node.Name] = late{node, plan, f.clock.Now().Add(requestTimeout)}
	}
}

// answerOne ends one of the writes that are under way.
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
	case outcome == 0: // refused
		f.allocator.Failed(name)
	case outcome == 1 || timedOut: // no answer, and it happens later or never
		f.allocator.Doubt(sent.node, sent.plan)
		f.late = append(f.late, sent)
	case outcome == 2: // it happens, and no answer comes
		f.apply(sent.node, sent.plan)
		f.allocator.Doubt(sent.node, sent.plan)
	default:
		if written := f.apply(sent.node, sent.plan); written != nil {
			f.written[name] = written
			f.succeeded(written)
		} else {
			f.allocator.Failed(name)
		}
	}
}

func (f *fleet) limit(obj *corev1.Node, node *noderule.Node, verdicts []noderule.Verdict) {
	if f.allocator.Unsure(f.book, node, verdicts) {
		_ = f.allocator.Survey(func(see func(*corev1.Node)) error {
			for _, node := range f.truth {
				see(node)
			}
			return nil
		})
	}
	f.allocator.Limit(f.book, obj, verdicts)
}

// lateWrite carries a write out that got no answer, or not: the API server gives up after a while.
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

func (f *fleet) succeeded(node *corev1.Node) {
	f.allocator.Written(node.Name, func() *corev1.Node { return node })
}

// apply writes the plan if the node has the taints that it was made for, as the API server does,
// and looks whether that takes one node too many away.
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
		f.t.Fatalf("after %d steps %v are away: at most %d may be", f.all, slices.Sorted(maps.Keys(f.away)), limit)
	}
	return now
}

// used says whether the node is in use, in the plainest words: older than the rule, remembered, or
// Ready and not held.
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

// No history of failures, crashes, late events and late writes takes more nodes away at one time
// than the rule allows.
func TestNoHistoryTakesTooManyNodesAway(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			f := newFleet(t, seed, strconv.Itoa(1+int(seed%3)))
			for f.all = range 10_000 {
				f.step()
			}
			if f.taken < 10 || f.limited < 10 {
				t.Errorf("only %d nodes were taken away and %d kept: that was no test", f.taken, f.limited)
			}
			f.settle()
		})
	}
}

// settle lets everything arrive: in the end as many nodes are away as may be, and no more.
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
		f.tellOne()
		names := slices.Sorted(maps.Keys(f.cache))
		obj := f.read(names[f.random.IntN(len(names))])
		if doubt, _ := f.allocator.Doubts(obj.Name); doubt && f.truth[obj.Name] != nil {
			obj = f.truth[obj.Name]
			f.allocator.Resolve(obj)
		}
		node := noderule.NodeOf(obj)
		verdicts := f.book.Verdicts(node, f.clock.Now())
		f.limit(obj, node, verdicts)
		if plan := noderule.PlanFor(node, verdicts, nil, f.clock.Now()); !plan.Empty() && f.allocator.Send(node, plan) {
			if written := f.apply(node, plan); written != nil {
				f.written[node.Name] = written
				f.succeeded(written)
			} else {
				f.allocator.Failed(node.Name)
			}
		}
	}
	if s := noderule.Summarize(f.book.Rules()[0], f.fleetNodes(), f.clock.Now(), 0); s.Unsettled > 0 {
		f.t.Errorf("in the end %d nodes are not as they should be: %+v", s.Unsettled, s)
	}
}

// say makes the network of a node ready or not.
func (f *fleet) say(name string, status corev1.ConditionStatus) {
	node := f.truth[name].DeepCopy()
	node.Status.Conditions[1].Status = status
	f.write(node)
}

// decide is the plan of a manager that looks at the node as it is, with this book.
func (f *fleet) decide(book *noderule.Rulebook, name string) (*noderule.Node, *noderule.Plan) {
	obj := f.truth[name]
	node := noderule.NodeOf(obj)
	verdicts := book.Verdicts(node, f.clock.Now())
	if f.allocator.Unsure(book, node, verdicts) {
		if err := f.allocator.Survey(func(see func(*corev1.Node)) error {
			for _, node := range f.truth {
				see(node)
			}
			return nil
		}); err != nil {
			f.t.Fatal(err)
		}
	}
	f.allocator.Limit(book, obj, verdicts)
	return node, noderule.PlanFor(node, verdicts, nil, f.clock.Now())
}

// unlimited is a fleet of a rule that has no limit yet, whose nodes are all to be taken away.
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

func TestAWriteUnderWayCountsWhenALimitComes(t *testing.T) {
	f := unlimited(t)
	node, plan := f.decide(f.book, "n0")
	if plan.Empty() || !f.allocator.Send(noderule.NodeOf(f.truth["n0"]), plan) {
		t.Fatal("n0 is not taken away, though nothing limits that")
	}
	f.limitTo(1)
	if _, plan := f.decide(f.book, "n1"); !plan.Empty() && f.allocator.Send(noderule.NodeOf(f.truth["n1"]), plan) {
		t.Error("n1 is taken away beside n0, whose write is under way")
	}
	f.succeeded(f.apply(node, plan))
	if _, plan := f.decide(f.book, "n1"); !plan.Empty() && f.allocator.Send(noderule.NodeOf(f.truth["n1"]), plan) {
		t.Error("n1 is taken away beside n0, which is away")
	}
}

func TestWhatAWriteMadeIsAskedOnlyWhereALimitCountsIt(t *testing.T) {
	f, asked := unlimited(t), 0
	written := func() {
		f.allocator.Written("n0", func() *corev1.Node { asked++; return f.truth["n0"] })
	}
	written()
	if asked != 0 {
		t.Error("asked, though nothing limits")
	}
	f.limitTo(1)
	f.decide(f.book, "n0") // who decides learns of the limit
	written()
	if asked != 1 {
		t.Errorf("asked %d times, must be once", asked)
	}
}

func TestAPlanOfAnOlderBookIsNotWritten(t *testing.T) {
	f := unlimited(t)
	older := f.book
	_, stale := f.decide(older, "n1") // and the worker is slow
	f.limitTo(1)
	_, plan := f.decide(f.book, "n0")
	if plan.Empty() || !f.allocator.Send(noderule.NodeOf(f.truth["n0"]), plan) {
		t.Fatal("n0 is not taken away, though one may be")
	}
	if f.allocator.Send(noderule.NodeOf(f.truth["n1"]), stale) {
		t.Error("n1 is taken away beside n0, by a plan from before the limit")
	}
	if _, plan := f.decide(older, "n2"); !plan.Empty() && f.allocator.Send(noderule.NodeOf(f.truth["n2"]), plan) {
		t.Error("n2 is taken away by a worker that does not know the limit")
	}
}

func TestNothingIsTakenWhileWritesOfAnotherManagerMayHappen(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.feared = f.clock.Now().Add(time.Minute)
	for name := range f.truth {
		f.say(name, corev1.ConditionFalse)
	}
	if _, plan := f.decide(f.book, "n0"); !plan.Empty() {
		t.Errorf("n0 is taken away: %+v", plan.Changes)
	}
	f.clock.SetTime(f.feared)
	if _, plan := f.decide(f.book, "n0"); plan.Empty() {
		t.Error("n0 is not taken away, though nothing is to be feared any more")
	}
}

func TestAWriteWithoutAnAnswerCountsForAsLongAsItMayHappen(t *testing.T) {
	f := newFleet(t, 0, "1")
	f.say("n0", corev1.ConditionFalse)
	f.say("n1", corev1.ConditionFalse)
	node, plan := f.decide(f.book, "n0")
	if plan.Empty() || !f.allocator.Send(node, plan) {
		t.Fatal("n0 is not held, though one may be")
	}
	f.allocator.Doubt(node, plan)
	f.clock.SetTime(f.clock.Now().Add(unanswered - time.Second))
	f.allocator.Resolve(f.truth["n0"])
	if _, plan := f.decide(f.book, "n1"); !plan.Empty() {
		t.Error("n1 is held while n0 may still be")
	}
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	f.allocator.Resolve(f.truth["n0"])
	if doubted, _ := f.allocator.Doubts("n0"); doubted {
		t.Error("the write still counts, though it can no longer happen")
	}
}

// A write of a node that is gone can happen no more, though nobody heard what became of it.
func TestANodeThatIsGoneTakesNoPlace(t *testing.T) {
	f := unlimited(t)
	_, plan := f.decide(f.book, "n0")
	if !f.allocator.Send(noderule.NodeOf(f.truth["n0"]), plan) {
		t.Fatal("n0 is not taken away, though nothing limits that")
	}
	gone := f.truth["n0"]
	delete(f.truth, "n0")
	delete(f.cache, "n0")
	f.allocator.Gone(gone)
	f.allocator.Doubt(noderule.NodeOf(gone), plan)
	f.allocator.Absent("n0")
	f.limitTo(1)
	if _, plan := f.decide(f.book, "n1"); plan.Empty() || !f.allocator.Send(noderule.NodeOf(f.truth["n1"]), plan) {
		t.Error("n1 is not taken away: n0, which does not exist, has the one place")
	}
}

// A new node that is being held when a limit comes is not one of those that were in use.
func TestANewNodeThatIsBeingHeldTakesNoPlace(t *testing.T) {
	for name, end := range map[string]func(f *fleet, node *noderule.Node, plan *noderule.Plan){
		"it is written":   func(f *fleet, node *noderule.Node, plan *noderule.Plan) { f.succeeded(f.apply(node, plan)) },
		"nobody knows it": func(f *fleet, node *noderule.Node, plan *noderule.Plan) { f.allocator.Doubt(node, plan) },
	} {
		t.Run(name, func(t *testing.T) {
			f := unlimited(t)
			f.join("new", f.clock.Now().Add(time.Minute))
			late := f.truth["new"].DeepCopy()
			for i := range late.Status.Conditions {
				late.Status.Conditions[i].Status = corev1.ConditionFalse // not Ready either
			}
			f.write(late)
			node, plan := f.decide(f.book, "new")
			if plan.Empty() || !f.allocator.Send(node, plan) {
				t.Fatal("the new node is not held")
			}
			f.limitTo(1)
			f.allocator.See(f.book, f.truth["n0"])
			f.rule.Spec.MaxUnavailable = ptr.To(intstr.FromInt(9)) // for the check of the fleet, which knows no limit that comes
			end(f, node, plan)
			if node, plan := f.decide(f.book, "n0"); plan.Empty() || !f.allocator.Send(node, plan) {
				t.Error("n0 is not taken away: a node that was never in use has the one place")
			}
		})
	}
}
