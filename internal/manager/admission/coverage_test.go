package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
)

const settle = 5 * time.Second

// taintNewNodes is the policy of rules with these names, which are also their UIDs. The rule large does not fit into the
// policy.
func taintNewNodes(names ...string) admission.Compiled {
	var objs []*v1alpha1.NodeReadinessRule
	for _, name := range names {
		objs = append(objs, &v1alpha1.NodeReadinessRule{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: v1alpha1.NodeReadinessRuleSpec{
				Conditions:      []v1alpha1.ConditionRequirement{{Type: "Ready", RequiredStatus: corev1.ConditionTrue}},
				Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/" + name, Effect: corev1.TaintEffectNoSchedule},
				EnforcementMode: v1alpha1.EnforcementModeContinuous,
				NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"pool": "a"}},
			},
		})
		if name == "large" {
			var values []v1alpha1.LabelValue
			for i := range 1000 {
				values = append(values, v1alpha1.LabelValue(fmt.Sprintf("%063d", i)))
			}
			selector := &objs[len(objs)-1].Spec.NodeSelector
			selector.MatchExpressions = []v1alpha1.NodeSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}}
		}
	}
	return admission.CompileTaintNewNodes(noderule.NewRulebook(objs).Rules())
}

// in is a state in which the policy has exactly these rules.
func in(names ...string) admissioncontroller.State {
	return admissioncontroller.State{Stored: taintNewNodes(names...), Wanted: taintNewNodes(names...)}
}

type memory struct {
	*admissioncontroller.Coverage
	clock *testclock.FakePassiveClock
}

func newMemory() memory {
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	return memory{Coverage: admissioncontroller.New(clock, settle, "readygate-test", "others do it later"), clock: clock}
}

func (m memory) after(d time.Duration) { m.clock.SetTime(m.clock.Now().Add(d)) }

// reason returns why the rule is not covered; empty if it is.
func (m memory) reason(t *testing.T, uid types.UID, was bool) (string, time.Duration) {
	t.Helper()
	gap, wait, known := m.Covers(uid, was)
	if !known {
		return "not known", wait
	}
	if gap == nil {
		return "", wait
	}
	return gap.Reason, wait
}

func TestARuleIsCoveredWhenThePolicyHasSettled(t *testing.T) {
	m := newMemory()
	if got, _ := m.reason(t, "a", true); got != "not known" {
		t.Errorf("before the first state: %q", got)
	}
	m.Observe(in())
	m.Observe(admissioncontroller.State{Stored: taintNewNodes(), Wanted: taintNewNodes("a")})
	if got, wait := m.reason(t, "a", false); got != v1alpha1.ReasonProgressing || wait != 0 {
		t.Errorf("about to be written: %q %v", got, wait)
	}
	m.Observe(in("a"))
	m.after(time.Second)
	if got, wait := m.reason(t, "a", false); got != v1alpha1.ReasonProgressing || wait != settle-time.Second {
		t.Errorf("just written: %q %v", got, wait)
	}
	m.after(settle - time.Second)
	if got, wait := m.reason(t, "a", false); got != "" || wait != 0 {
		t.Errorf("settled: %q %v", got, wait)
	}
	m.Observe(in("a", "b"))
	if got, _ := m.reason(t, "a", true); got != "" {
		t.Errorf("after another rule was added: %q", got)
	}
	if got, _ := m.reason(t, "b", false); got != v1alpha1.ReasonProgressing {
		t.Errorf("the other rule: %q", got)
	}
}

// A part of the policy that was removed and restored settles again.
func TestEditOfThePolicyRestartsTheSettleTime(t *testing.T) {
	m := newMemory()
	m.Observe(in("a"))
	m.after(settle)
	m.Observe(admissioncontroller.State{Stored: taintNewNodes(), Wanted: taintNewNodes("a")})
	m.Observe(in("a"))
	if got, wait := m.reason(t, "a", true); got != v1alpha1.ReasonProgressing || wait != settle {
		t.Errorf("restored: %q %v", got, wait)
	}
}

// The previous leader has waited already if the rule is reported as covered and its part of the policy is unchanged.
func TestNewLeaderDoesNotRestartTheSettleTime(t *testing.T) {
	m := newMemory()
	m.Observe(in("a", "b"))
	if got, _ := m.reason(t, "a", true); got != "" {
		t.Errorf("covered before: %q", got)
	}
	if got, wait := m.reason(t, "b", false); got != v1alpha1.ReasonProgressing || wait != settle {
		t.Errorf("not covered before: %q %v", got, wait)
	}
}

func TestGapIsReportedForEveryRule(t *testing.T) {
	m := newMemory()
	state := in("a")
	state.Gap = &admissioncontroller.Gap{Reason: v1alpha1.ReasonBindingMissing}
	m.Observe(state)
	if got, _ := m.reason(t, "a", true); got != v1alpha1.ReasonBindingMissing {
		t.Errorf("got %q", got)
	}
}

// A rule that does not fit has another reason than a rule that is not compiled yet.
func TestRuleThatIsTooLargeReportsIt(t *testing.T) {
	m := newMemory()
	changes := 0
	m.Observe(in("a"))
	m.OnChange(func() { changes++ })
	if got, _ := m.reason(t, "large", false); got != v1alpha1.ReasonProgressing {
		t.Errorf("a rule that is new: %q", got)
	}
	m.Observe(admissioncontroller.State{Stored: taintNewNodes("a"), Wanted: taintNewNodes("a", "large")})
	if got, _ := m.reason(t, "large", true); got != v1alpha1.ReasonTooLarge || changes != 1 {
		t.Errorf("a rule that does not fit: %q, %d changes", got, changes)
	}
}

// A rule may be deleted while the write that adds it to the policy is in flight.
func TestARuleThatIsAboutToBeWrittenIsNotGone(t *testing.T) {
	m := newMemory()
	m.Observe(in())
	m.after(settle)
	m.Observe(admissioncontroller.State{Stored: taintNewNodes(), Wanted: taintNewNodes("a")})
	if gone, wait := m.Gone("a"); gone || wait != 0 {
		t.Errorf("gone %v, again in %v", gone, wait)
	}
}

// A restored binding takes as long to reach all API servers as the policy does.
func TestAPolicyThatIsInForceAgainSettlesAgain(t *testing.T) {
	m := newMemory()
	m.Observe(in("a"))
	m.after(settle)
	state := in("a")
	state.Gap = &admissioncontroller.Gap{Reason: v1alpha1.ReasonBindingMissing}
	m.Observe(state)
	m.after(settle)
	m.Observe(in("a"))
	if got, wait := m.reason(t, "a", true); got != v1alpha1.ReasonProgressing || wait != settle {
		t.Errorf("got %q %v", got, wait)
	}
}

func TestARuleIsGoneWhenEveryAPIServerHasSeenIt(t *testing.T) {
	m := newMemory()
	gone := func(want bool, wantWait time.Duration) {
		t.Helper()
		if got, wait := m.Gone("a"); got != want || wait != wantWait {
			t.Errorf("gone %v, again in %v; want %v, %v", got, wait, want, wantWait)
		}
	}
	gone(false, 0) // the policy was not read yet
	m.Observe(in("a"))
	gone(false, 0) // still in the policy
	m.after(time.Minute)
	m.Observe(in())
	gone(false, settle)
	m.after(settle)
	gone(true, 0)
	m.after(2 * time.Hour)
	m.Observe(in("b"))
	gone(true, 0) // also after forgetAfter
}

// After a start it is not known when a rule was removed from the policy.
func TestRuleRemovedBeforeTheStartHasToSettle(t *testing.T) {
	m := newMemory()
	m.Observe(in())
	if gone, wait := m.Gone("a"); gone || wait != settle {
		t.Errorf("gone %v, ask again in %v", gone, wait)
	}
}

// A cluster without the API never had a policy. A deleted policy may still be in force for the settle time. A policy
// that cannot be read, relied on or written may be in force indefinitely.
func TestRuleIsNotGoneWhileAPolicyMayNameIt(t *testing.T) {
	edited := admission.TaintNewNodesSpec(taintNewNodes("a"))
	edited.ReinvocationPolicy = "Never"
	tests := map[string]struct {
		state admissioncontroller.State
		gone  bool
		wait  time.Duration
	}{
		v1alpha1.ReasonAPIMissing:    {gone: true},
		v1alpha1.ReasonPolicyMissing: {wait: settle},
		v1alpha1.ReasonPolicyForeign: {state: admissioncontroller.State{Stored: taintNewNodes("a")}},
		v1alpha1.ReasonWriteRefused:  {state: admissioncontroller.State{Unread: true}},
		"Edited":                     {state: admissioncontroller.State{Stored: admission.ReadTaintNewNodes(&edited)}},
	}
	for reason, tc := range tests {
		t.Run(reason, func(t *testing.T) {
			m := newMemory()
			m.Observe(in("a"))
			m.after(time.Minute)
			tc.state.Gap = &admissioncontroller.Gap{Reason: reason}
			m.Observe(tc.state)
			if gone, wait := m.Gone("a"); gone != tc.gone || wait != tc.wait {
				t.Errorf("gone %v, ask again in %v", gone, wait)
			}
			m.Observe(in()) // now the rule is removed from the policy
			m.after(settle)
			if gone, _ := m.Gone("a"); !gone {
				t.Error("never gone")
			}
		})
	}
}

// A rule of an edited policy that is removed together with the edit has to settle, too.
func TestRuleOfAnEditedPolicyHasToSettle(t *testing.T) {
	edited := admission.TaintNewNodesSpec(taintNewNodes("a"))
	edited.ReinvocationPolicy = "Never"
	m := newMemory()
	m.Observe(in("a"))
	m.after(time.Minute)
	m.Observe(admissioncontroller.State{Stored: admission.ReadTaintNewNodes(&edited)})
	m.Observe(in())
	if gone, wait := m.Gone("a"); gone || wait != settle {
		t.Errorf("gone %v, ask again in %v", gone, wait)
	}
}

// An API server compiles a policy when it stores it and when it starts to enforce it. The first time is an estimate of
// the second.
func TestALongTextSettlesLonger(t *testing.T) {
	m := newMemory()
	m.Observe(in())
	m.after(time.Minute)
	state := in("a")
	state.Took = 2 * time.Second
	m.Observe(state)
	if got, wait := m.reason(t, "a", false); got != v1alpha1.ReasonProgressing || wait != settle+6*time.Second {
		t.Errorf("covered: %q %v", got, wait)
	}
	state = in()
	state.Took = time.Second
	m.Observe(state)
	if gone, wait := m.Gone("a"); gone || wait != settle+3*time.Second {
		t.Errorf("gone %v, ask again in %v", gone, wait)
	}
}

func TestOnlyChangesAreNotified(t *testing.T) {
	m := newMemory()
	changes := 0
	m.OnChange(func() { changes++ })
	for _, state := range []admissioncontroller.State{in("a"), in("a"), in("a", "b"), in("a", "b")} {
		m.Observe(state)
	}
	if changes != 2 {
		t.Errorf("%d calls for 2 changes", changes)
	}
}

// If an administrator applies the policy, a rule that differs from it reports the difference and the command, and a
// rule that does not differ stays covered.
func TestAPolicyThatAnAdministratorAppliesIsOutdated(t *testing.T) {
	m := newMemory()
	manual := func(stored, wanted admission.Compiled) admissioncontroller.State {
		return admissioncontroller.State{Stored: stored, Wanted: wanted, Manual: true}
	}
	message := func(uid types.UID) string {
		gap, wait, _ := m.Covers(uid, false)
		if gap == nil || gap.Reason != v1alpha1.ReasonPolicyOutdated || wait != 0 || !strings.Contains(gap.Message, admissioncontroller.ApplyCommand) || !strings.Contains(gap.Message, "readygate-test") {
			t.Errorf("rule %s: %+v, wait %v", uid, gap, wait)
			return ""
		}
		return gap.Message
	}
	m.Observe(manual(taintNewNodes("a", "b"), taintNewNodes("a", "b")))
	m.after(settle)
	m.Observe(manual(taintNewNodes("a", "b"), taintNewNodes("a", "c", "large")))
	if got, _ := m.reason(t, "a", false); got != "" {
		t.Errorf("the rule that did not change: %q", got)
	}
	if got := message("c"); !strings.Contains(got, "does not have this rule") || !strings.Contains(got, "others do it later") {
		t.Errorf("a new rule: %s", got)
	}
	if got := message("b"); !strings.Contains(got, "still has this rule") {
		t.Errorf("a deleted rule: %s", got)
	}
	if gone, wait := m.Gone("b"); gone || wait != 0 {
		t.Errorf("a deleted rule is gone: %v, in %v", gone, wait)
	}
	if got, _ := m.reason(t, "large", false); got != v1alpha1.ReasonTooLarge {
		t.Errorf("a rule that does not fit: %q", got)
	}
	if got, _ := m.reason(t, "unknown", false); got != v1alpha1.ReasonProgressing {
		t.Errorf("a rule that is not compiled yet: %q", got)
	}
	edited := admission.TaintNewNodesSpec(taintNewNodes("a"))
	edited.Variables[0].Expression = "true"
	m.Observe(manual(admission.ReadTaintNewNodes(&edited), taintNewNodes("a")))
	if got := message("a"); !strings.Contains(got, "was edited") {
		t.Errorf("an edited policy: %s", got)
	}
	m.Observe(manual(taintNewNodes("a"), taintNewNodes("a")))
	if got, wait := m.reason(t, "a", true); got != v1alpha1.ReasonProgressing || wait != settle {
		t.Errorf("just applied: %q %v", got, wait)
	}
}
