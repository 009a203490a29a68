package noderule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Options of rules that depend on time.
func minReady(d time.Duration) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = int32(d / time.Second) }
}

func deadline(d time.Duration) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To(int32(d / time.Second)) }
}

func releaseStuck(r *v1alpha1.NodeReadinessRule) { r.Spec.OnDeadline = v1alpha1.DeadlineRelease }

func perBoot(r *v1alpha1.NodeReadinessRule) {
	bootstrapOnly(r)
	r.Spec.BootstrapScope = v1alpha1.BootstrapScopeBoot
}

func maxUnavailable(n string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.Parse(n)) }
}

func dependsOn(names ...string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.DependsOn = names }
}

func maxAge(q v1alpha1.ConditionRequirement, age time.Duration) v1alpha1.ConditionRequirement {
	q.MaxAge = &metav1.Duration{Duration: age}
	return q
}

// life is one node under some rules while time passes. A manager reconciles after every
// change, and when the last verdict can change by time alone.
type life struct {
	t       *testing.T
	book    *noderule.Rulebook
	node    *noderule.Node
	now     time.Time
	until   time.Time
	changes []string
	// saw is called after every evaluation, unless it is nil.
	saw func(before *noderule.Node, plan *noderule.Plan)
}

func newLife(t *testing.T, n *noderule.Node, objs ...*v1alpha1.NodeReadinessRule) *life {
	t.Helper()
	l := &life{t: t, book: noderule.NewRulebook(objs), node: n, now: noon}
	for _, r := range l.book.Rules() {
		if r.Problem != nil {
			t.Fatalf("rule %s: %s", r.Name, r.Problem.Message)
		}
	}
	l.reconcile()
	return l
}

// reconcile evaluates the node as the manager does.
func (l *life) reconcile() {
	l.t.Helper()
	plan := l.book.Plan(l.node, l.now)
	for _, change := range plan.Changes {
		l.changes = append(l.changes, fmt.Sprintf("%s %s", change.Kind, change.Rule))
	}
	if l.saw != nil {
		l.saw(l.node, plan)
	}
	l.node = plan.Apply(l.node)
	if again := l.book.Plan(l.node, l.now); !again.Empty() {
		l.t.Fatalf("at %s %+v was applied, and leaves something to plan: %+v", l.clock(), plan, again)
	}
	l.until = time.Time{}
	for _, v := range l.book.Evaluate(l.node, l.now).Verdicts {
		if !v.Until.IsZero() && (l.until.IsZero() || v.Until.Before(l.until)) {
			l.until = v.Until
		}
	}
	if !l.until.IsZero() && !l.until.After(l.now) {
		l.t.Fatalf("at %s the next reconcile is due at %s: a manager would reconcile forever", l.clock(), l.until)
	}
}

// pass advances the clock. The manager reconciles only when it is due.
func (l *life) pass(d time.Duration) *life {
	l.t.Helper()
	for end := l.now.Add(d); ; l.reconcile() {
		if l.until.IsZero() || l.until.After(end) {
			l.now = end
			return l
		}
		l.now = l.until
	}
}

// do changes the node, and the manager reconciles.
func (l *life) do(change func(*noderule.Node)) *life {
	l.t.Helper()
	changed := *l.node
	changed.Conditions = slices.Clone(l.node.Conditions)
	change(&changed)
	l.node = &changed
	l.reconcile()
	return l
}

// report writes a condition as a reporter does.
func (l *life) report(conditionType string, status corev1.ConditionStatus) *life {
	l.t.Helper()
	return l.do(func(n *noderule.Node) { setCondition(n, conditionType, status, l.now) })
}

// boot is the node back from a reboot: Ready, with all conditions as they were.
func (l *life) boot(id string) *life {
	l.t.Helper()
	return l.do(func(n *noderule.Node) {
		n.BootID = id
		setCondition(n, "Ready", True, l.now)
	})
}

func setCondition(n *noderule.Node, conditionType string, status corev1.ConditionStatus, now time.Time) {
	i := slices.IndexFunc(n.Conditions, func(c corev1.NodeCondition) bool { return string(c.Type) == conditionType })
	if i < 0 {
		i = len(n.Conditions)
		n.Conditions = append(n.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(conditionType)})
	}
	c := &n.Conditions[i]
	if c.Status != status {
		c.Status, c.LastTransitionTime = status, metav1.NewTime(now)
	}
	c.LastHeartbeatTime = metav1.NewTime(now)
}

// want checks the state of the node now: held or released.
func (l *life) want(state string) *life {
	l.t.Helper()
	got := "released"
	if len(l.node.Taints) > 0 {
		got = "held"
	}
	if got != state {
		l.t.Fatalf("at %s the node is %s, must be %s; changes: %v; %v", l.clock(), got, state, l.changes, l.node.Annotations)
	}
	return l
}

// wantChanges compares the changes since its last call.
func (l *life) wantChanges(want ...string) *life {
	l.t.Helper()
	wantEqual(l.t, "changes until "+l.clock(), l.changes, want)
	l.changes = nil
	return l
}

// wantWhy checks the cause and the unmet requirements of the first rule's verdict.
func (l *life) wantWhy(cause noderule.Cause, words string) *life {
	l.t.Helper()
	v := l.book.Evaluate(l.node, l.now).Verdicts[0]
	if unmet := fmt.Sprint(v.Unmet); v.Cause != cause || !strings.Contains(unmet, words) {
		l.t.Fatalf("at %s the cause is %q and %s, must be %q and tell %q", l.clock(), v.Cause, unmet, cause, words)
	}
	return l
}

// clock is the time since the beginning.
func (l *life) clock() string { return l.now.Sub(noon).String() }

// heard is the node after a heartbeat of its network.
func heard(n *noderule.Node, now time.Time) *noderule.Node {
	changed := *n
	changed.Conditions = slices.Clone(n.Conditions)
	setCondition(&changed, network, True, now)
	return &changed
}

// one is a fleet of one node.
func one(n *noderule.Node) func(func(*noderule.Node) bool) {
	return slices.Values([]*noderule.Node{n})
}
