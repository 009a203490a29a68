package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/podrule"
)

// openers are the accounts that may open gates although the network is not known to be ready.
var openers = []string{admission.ManagerUser, admission.CleanupUser}

// byOpener is a change of the pod's status by one of them.
func byOpener(old, p *corev1.Pod) request {
	return updatedPod(old, p).of("status").by(admission.ManagerUser)
}

const (
	closes     = "the manager and the cleanup may open gates with the reason AgentGone, RuleDeleted, NotSelected, and close none"
	removes    = "the manager and the cleanup may open gates, and not remove their conditions"
	closeLatch = "the manager and the cleanup may open the latch permanently, and not close it"
)

// What the manager and the cleanup may not do is refused in the order of the policy.
func TestTheManagerAndTheCleanupMayOpenGatesOnly(t *testing.T) {
	type openCase struct {
		podChange
		words []string // about the gate and the latch
	}
	cases := map[string]openCase{}
	for name, c := range podChanges() {
		cases[name] = openCase{podChange: c}
		if c.removed {
			cases[name] = openCase{podChange: c, words: []string{removes}}
		}
	}
	latch := func(value string) podOption { return podNote(v1alpha1.LatchAnnotation, value) }
	reason := func(reason string) podOption {
		return changesCondition(2, func(c *corev1.PodCondition) { c.Reason = reason })
	}
	for name, c := range map[string]struct {
		change podOption
		words  []string
	}{
		"opening, because there is no agent":        {change: opened(v1alpha1.ReasonAgentGone)},
		"opening, because the rule is gone":         {change: opened(v1alpha1.ReasonRuleDeleted)},
		"opening, because no rule selects it":       {change: opened(v1alpha1.ReasonNotSelected)},
		"opening a gate that has no condition yet":  {change: all(withCondition(otherGate, True), changesCondition(3, func(c *corev1.PodCondition) { c.Reason = v1alpha1.ReasonRuleDeleted }))},
		"opening the latch for good":                {change: latch("always " + v1alpha1.ReasonRuleDeleted)},
		"opening both":                              {change: all(opened(v1alpha1.ReasonAgentGone), latch("always "+v1alpha1.ReasonAgentGone))},
		"opening, with what the server does":        {change: all(opened(v1alpha1.ReasonAgentGone), storedAgain)},
		"opening, as if all were ready":             {change: opened(v1alpha1.ReasonAllReady), words: []string{closes}},
		"opening, as if an agent had waited":        {change: opened(v1alpha1.ReasonDeadline), words: []string{closes}},
		"opening without a reason":                  {change: opened(""), words: []string{closes}},
		"a gate that is closed, with a reason":      {change: reason(v1alpha1.ReasonAgentGone), words: []string{closes}},
		"a gate that is unknown":                    {change: changesCondition(2, func(c *corev1.PodCondition) { c.Status, c.Reason = Unknown, v1alpha1.ReasonAgentGone }), words: []string{closes}},
		"closing the other gate":                    {change: withCondition(otherGate, False), words: []string{closes}},
		"opening one gate and closing the other":    {change: all(opened(v1alpha1.ReasonAgentGone), withCondition(otherGate, False)), words: []string{closes}},
		"removing the gate's condition":             {change: saysOnly(0, 1), words: []string{removes}},
		"opening the latch of this sandbox":         {change: latch("open 10.0.0.7 boot -"), words: []string{closeLatch}},
		"closing the latch":                         {change: latch("closed - boot -"), words: []string{closeLatch}},
		"what looks like opening it for good":       {change: latch("always"), words: []string{closeLatch}},
		"an empty key":                              {change: latch(""), words: []string{closeLatch}},
		"closing the gate and opening the latch":    {change: all(reason("x"), latch("always RuleDeleted")), words: []string{closes}},
		"closing the latch and removing the gate's": {change: all(saysOnly(0, 1), latch("closed - boot -")), words: []string{removes, closeLatch}},
	} {
		cases[name] = openCase{podChange: podChange{change: c.change}, words: c.words}
	}
	v := newValidator(t, admission.Openers().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conditions, fields := c.refusal("the manager or the cleanup")
			want := append(append(conditions, c.words...), fields...)
			for _, who := range openers {
				wantEqual(t, "refused to "+who, v.refuses(t, byOpener(waiting(), waiting(c.change)).by(who)), want)
			}
			for _, other := range []string{admission.PodgateUser, "system:node:n", "system:serviceaccount:other:" + admission.ManagerAccount, admission.ManagerUser + "2", ""} {
				wantEqual(t, "refused to "+other, v.refuses(t, byOpener(waiting(), waiting(c.change)).by(other)), nil)
			}
		})
	}
}

// An open gate stays open, and a latch that is open for good stays so.
func TestTheManagerAndTheCleanupMayNotCloseGatesOrLatches(t *testing.T) {
	open := func(options ...podOption) *corev1.Pod {
		return waiting(append([]podOption{opened(v1alpha1.ReasonAllReady), podNote(v1alpha1.LatchAnnotation, "always RuleDeleted")}, options...)...)
	}
	v := newValidator(t, admission.Openers().Spec)
	for name, c := range map[string]struct {
		change podOption
		want   []string
	}{
		"left as it is":         {all(), nil},
		"closed":                {changesCondition(2, func(c *corev1.PodCondition) { c.Status = False }), []string{closes}},
		"closed with a reason":  {changesCondition(2, func(c *corev1.PodCondition) { c.Status, c.Reason = False, v1alpha1.ReasonAgentGone }), []string{closes}},
		"the latch closed":      {podNote(v1alpha1.LatchAnnotation, "closed - boot -"), []string{closeLatch}},
		"the latch forgotten":   {func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.LatchAnnotation) }, []string{closeLatch}},
		"another reason for it": {podNote(v1alpha1.LatchAnnotation, "always AgentGone"), nil},
	} {
		wantEqual(t, name, v.refuses(t, byOpener(open(), open(c.change))), c.want)
	}
}

func TestEveryOtherFieldOfAPodIsProtectedFromTheManager(t *testing.T) {
	wantPodProtected(t, newValidator(t, admission.Openers().Spec), byOpener)
}

func TestTheManagerAndTheCleanupMayDoNothingElseToPods(t *testing.T) {
	v := newValidator(t, admission.Openers().Spec)
	for name, r := range otherRequests() {
		t.Run(name, func(t *testing.T) {
			for _, who := range openers {
				wantEqual(t, "refused to "+who, v.refuses(t, r.by(who)), []string{"the manager and the cleanup may patch or update pods/status, and do nothing else to pods"})
			}
			for _, other := range []string{admission.PodgateUser, "system:node:n", "alice"} {
				wantEqual(t, "refused to "+other, v.refuses(t, r.by(other)), nil)
			}
		})
	}
}

// Opening needs no node: the manager opens gates everywhere, also of a pod that has nothing yet.
func TestTheManagerAndTheCleanupMayOpenPodsOfEveryNode(t *testing.T) {
	v := newValidator(t, admission.Openers().Spec)
	for _, node := range []string{"", "n", "m"} {
		bare := pod(onNode(node), hasGates(networkGate))
		open := pod(onNode(node), hasGates(networkGate), podNote(v1alpha1.LatchAnnotation, "always RuleDeleted"), func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: networkGate, Status: True, Reason: v1alpha1.ReasonRuleDeleted}}
		})
		wantEqual(t, "refused", v.refuses(t, byOpener(bare, open)), nil)
	}
}

// All that the core decides of pods without an agent, of gates that no rule has anymore and
// of pods that are left by an uninstallation may be written.
func TestTheDecisionsOfTheManagerAndTheCleanupAreNeverRefused(t *testing.T) {
	v := newValidator(t, admission.Openers().Spec)
	rapid.Check(t, func(t *rapid.T) {
		rules := podrule.NewRules(genPodRules(t))
		for range 20 {
			s := genSubject(t)
			for what, patch := range map[string]*podrule.Patch{
				"without an agent": podrule.Orphan(rules, s, noon).Patch, "abandoned": podrule.Abandoned(rules, s, noon).Patch,
				"left": podrule.Decide(nil, &podrule.Subject{Pod: s.Pod}, nil, noon).Patch,
			} {
				wantEqual(t, what, v.refuses(t, byOpener(s.Pod, patched(s.Pod, patch))), nil)
			}
		}
	})
}

// A policy that fails closed must not fail on a pod that is as large as pods can be.
func TestPoliciesAboutGatesAreNotTooExpensiveOnTheLargestPod(t *testing.T) {
	large := func(options ...podOption) *corev1.Pod {
		p := waiting()
		for i := range 1000 {
			podLabel(fmt.Sprintf("example.com/label-%d", i), strings.Repeat("a", 63))(p)
			podNote(fmt.Sprintf("example.com/note-%d", i), strings.Repeat("a", 200))(p)
			withCondition(fmt.Sprintf("example.com/condition-%d", i), False)(p)
		}
		for i := range 100 {
			container(fmt.Sprintf("c%d", i), corev1.ResourceRequirements{})(p)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprintf("c%d", i), Image: strings.Repeat("a", 200)})
		}
		for _, option := range options {
			option(p)
		}
		return p
	}
	change := all(opened(v1alpha1.ReasonAgentGone), podNote(v1alpha1.LatchAnnotation, "always AgentGone"))
	wantEqual(t, "an agent is refused", newValidator(t, admission.Podgate().Spec).refuses(t, byAgent(large(), large(change))), nil)
	wantEqual(t, "the manager is refused", newValidator(t, admission.Openers().Spec).refuses(t, byOpener(large(), large(change))), nil)
}
