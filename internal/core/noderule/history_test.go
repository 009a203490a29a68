package noderule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// history is the life of one node under rules with any of the optional fields, and what an observer
// of it knows without asking the core.
type history struct {
	*life
	random *rand.Rand
	boots  int

	objs  []*v1alpha1.NodeReadinessRule
	eyes  map[string]*witness // by the name of the rule
	tolds map[string]int
}

// witness is what was seen of one rule.
type witness struct {
	met   time.Time // since when the requirements have been met; zero: they are not
	held  time.Time // since when the taint has been there; zero: it is not
	stuck int       // how often that was reported since then
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{random: rand.New(rand.NewPCG(seed, 1)), eyes: map[string]*witness{}, tolds: map[string]int{}}
	number := 1 + h.random.IntN(3)
	for i := range number {
		h.objs = append(h.objs, h.rule(i, i == number-1))
		h.eyes[h.objs[i].Name] = &witness{}
	}
	n := worker()
	n.BootID = "0"
	setCondition(n, "Ready", True, noon)
	h.life = &life{t: t, book: noderule.NewRulebook(h.objs), node: n, now: noon}
	h.saw = h.observe
	for _, r := range h.book.Rules() {
		if r.Problem != nil {
			t.Fatalf("rule %s: %s", r.Name, r.Problem.Message)
		}
	}
	h.reconcile()
	return h
}

// chance is true in one of n cases.
func (h *history) chance(n int) bool { return h.random.IntN(n) == 0 }

// rule is one of any kind. Only the last may have a limit: whether one that has holds the node up for
// others is seen when its taint is there, which takes a second write.
func (h *history) rule(i int, last bool) *v1alpha1.NodeReadinessRule {
	name := fmt.Sprintf("r%d", i)
	requirements := []v1alpha1.ConditionRequirement{requirement("A", True)}
	if h.chance(2) {
		requirements = append(requirements, requirement("B", True))
	}
	if h.chance(2) {
		requirements[0] = maxAge(requirements[0], 2*time.Minute)
	}
	options := []ruleOption{taintKey("readiness.k8s.io/" + name), requires(requirements...), createdAt(dayOne.Add(time.Duration(i) * time.Hour))}
	switch h.random.IntN(3) {
	case 0:
		options = append(options, bootstrapOnly)
	case 1:
		options = append(options, perBoot)
	default:
		if h.chance(2) {
			options = append(options, anyOf)
		}
		if last && h.chance(3) {
			options = append(options, maxUnavailable("50%"))
		}
	}
	if h.chance(2) {
		options = append(options, minReady(time.Duration(1+h.random.IntN(90))*time.Second))
	}
	if h.chance(2) {
		options = append(options, deadline(time.Duration(1+h.random.IntN(10))*time.Minute))
		if h.chance(2) {
			options = append(options, releaseStuck)
		}
	}
	if i > 0 && h.chance(3) {
		options = append(options, dependsOn(fmt.Sprintf("r%d", h.random.IntN(i))))
	}
	return rule(name, options...)
}

// happen is one thing that happens to the node.
func (h *history) happen() {
	switch h.random.IntN(12) {
	case 0, 1, 2, 3:
		h.report([]string{"A", "B"}[h.random.IntN(2)], []corev1.ConditionStatus{True, True, False, Unknown}[h.random.IntN(4)])
	case 4: // a heartbeat
		if c := h.node.Conditions[h.random.IntN(len(h.node.Conditions))]; c.Type != corev1.NodeReady {
			h.report(string(c.Type), c.Status)
		}
	case 5:
		h.report("Ready", []corev1.ConditionStatus{True, True, Unknown}[h.random.IntN(3)])
	case 6:
		if h.chance(4) {
			h.boots++
			h.boot(strconv.Itoa(h.boots))
		}
	case 7: // a user removes a taint
		if len(h.node.Taints) > 0 && h.chance(4) {
			h.do(func(n *noderule.Node) { n.Taints = n.Taints[1:] })
		}
	default:
		h.pass(time.Duration(h.random.IntN(60_000)) * time.Millisecond)
	}
}

// observe checks the result of one reconcile.
func (h *history) observe(before *noderule.Node, plan *noderule.Plan) {
	for _, obj := range h.objs {
		eye := h.eyes[obj.Name]
		switch met := h.met(obj, before); {
		case !met:
			eye.met = time.Time{}
		case eye.met.IsZero():
			eye.met = h.now
		}
		for _, change := range plan.Changes {
			if change.UID == obj.UID {
				h.tolds[string(change.Kind)]++
				h.judge(obj, eye, plan, change.Kind)
			}
		}
	}
}

// met reports whether the requirements are met now, according to conditions and their age.
func (h *history) met(obj *v1alpha1.NodeReadinessRule, n *noderule.Node) bool {
	met := 0
	for _, q := range obj.Spec.Conditions {
		i := slices.IndexFunc(n.Conditions, func(c corev1.NodeCondition) bool { return string(c.Type) == q.Type })
		if i >= 0 && n.Conditions[i].Status == q.RequiredStatus && (q.MaxAge == nil || h.now.Sub(n.Conditions[i].LastHeartbeatTime.Time) < q.MaxAge.Duration) {
			met++
		}
	}
	if obj.Spec.ConditionPolicy == v1alpha1.ConditionPolicyAnyOf {
		return met > 0
	}
	return met == len(obj.Spec.Conditions)
}

func (h *history) judge(obj *v1alpha1.NodeReadinessRule, eye *witness, plan *noderule.Plan, kind noderule.ChangeKind) {
	h.t.Helper()
	spec := &obj.Spec
	simple := len(spec.DependsOn) == 0 && spec.BootstrapScope != v1alpha1.BootstrapScopeBoot // otherwise deadlines restart
	switch kind {
	case noderule.Added:
		eye.held, eye.stuck = h.now, 0
	case noderule.Stuck:
		if eye.stuck++; eye.stuck > 1 && simple {
			h.t.Fatalf("%s: rule %s says for the %dth time that the node is stuck", h.clock(), obj.Name, eye.stuck)
		}
		h.late(obj, eye)
	case noderule.Expired:
		h.late(obj, eye)
	case noderule.Removed:
		expired := slices.ContainsFunc(plan.Changes, func(c noderule.Change) bool { return c.UID == obj.UID && c.Kind == noderule.Expired })
		wait := time.Duration(spec.MinReadySeconds) * time.Second
		returned := spec.BootstrapScope == v1alpha1.BootstrapScopeBoot && !slices.ContainsFunc(plan.Changes, func(c noderule.Change) bool { return c.UID == obj.UID && c.Kind == noderule.Completed })
		if !expired && !returned && (eye.met.IsZero() || h.now.Sub(eye.met) < wait) {
			h.t.Fatalf("%s: rule %s released the node, whose requirements are met since %v, and must be so for %v", h.clock(), obj.Name, eye.met, wait)
		}
		eye.held = time.Time{}
	}
}

// late checks that a deadline is not over too early.
func (h *history) late(obj *v1alpha1.NodeReadinessRule, eye *witness) {
	h.t.Helper()
	if deadline := time.Duration(*obj.Spec.ProgressDeadlineSeconds) * time.Second; h.now.Sub(eye.held) < deadline-time.Second {
		h.t.Fatalf("%s: the deadline of rule %s is over after %v, must be no earlier than %v", h.clock(), obj.Name, h.now.Sub(eye.held), deadline)
	}
}

// No history of reports, silence, reboots and time breaks what the optional fields promise.
func TestRulesKeepTheirGuaranteesInRandomHistories(t *testing.T) {
	total, seeds := map[string]int{}, uint64(60)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			h := newHistory(t, seed)
			for range 10_000 {
				h.happen()
			}
			for kind, n := range h.tolds {
				total[kind] += n
			}
		})
	}
	for _, kind := range []noderule.ChangeKind{noderule.Added, noderule.Removed, noderule.Completed, noderule.Stuck, noderule.Expired, noderule.Noted} {
		if total[string(kind)] < 100 {
			t.Errorf("%s happened %d times: that was no test", kind, total[string(kind)])
		}
	}
}
