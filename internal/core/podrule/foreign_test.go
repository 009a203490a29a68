package podrule_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	closedKey = "closed 10.0.0.7 b1 2026-11-16T12:00:00Z"
	openKey   = "open 10.0.0.7 b1 2026-11-16T12:00:00Z"
)

// sets is another account that sets the gate to True.
func (w *world) sets(reason string) {
	w.set(corev1.PodCondition{Type: v1alpha1.DefaultGate, Status: "True", Reason: reason, LastTransitionTime: metav1.NewTime(w.now)})
}

// forges also writes the latch key.
func (w *world) forges(reason, key string) {
	w.sets(reason)
	w.subject.Pod.Annotations[v1alpha1.LatchAnnotation] = key
}

// ready is the kubelet that sets the condition Ready.
func (w *world) ready(status corev1.ConditionStatus, since time.Time) {
	w.set(corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)})
}

// restart replaces the agent process.
func (w *world) restart() { w.subject.History = &podrule.History{} }

func (w *world) tally() podrule.Tally {
	w.step()
	var tally podrule.Tally
	tally.Count(w.rules[0], &w.subject, &w.last)
	return tally
}

// latchIsOpen reports whether the key opens the latch of the pod's sandbox.
func (w *world) latchIsOpen() bool {
	key, _ := latchkey.Parse(w.subject.Pod.Annotations[v1alpha1.LatchAnnotation])
	return key.Opens("10.0.0.7", "b1")
}

// A controller that insists on True is set back three times with growing pauses. Then the gate stays True,
// the latch stays closed, and the pod is counted.
func TestAForeignTrueIsSetBackThreeTimes(t *testing.T) {
	w := newWorld(t, rule("network", startHold))
	w.latch()
	var at []time.Duration
	for range 6000 {
		w.pass(100 * time.Millisecond)
		if is := w.condition(v1alpha1.DefaultGate); is == nil || is.Status == "False" {
			w.sets("Programmed")
		}
		if w.step() {
			at = append(at, w.now.Sub(noon).Truncate(time.Second))
		}
		if w.latchIsOpen() {
			t.Fatalf("the key is %q", w.subject.Pod.Annotations[v1alpha1.LatchAnnotation])
		}
	}
	if want := []time.Duration{0, 2 * time.Second, 10 * time.Second}; len(at) != 3 || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] {
		t.Errorf("it was set back after %v, want %v", at, want)
	}
	w.expect("True Programmed", closedKey)
	if tally := w.tally(); tally.Foreign != 1 || tally.Waiting != 1 || tally.Open != 0 {
		t.Errorf("it counts as %+v", tally)
	}

	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	if tally := w.tally(); tally.Foreign != 0 || tally.Open != 1 {
		t.Errorf("after all components are ready it counts as %+v", tally)
	}
}

// A new agent process makes at most three more attempts.
func TestARestartCostsThreeMoreAttempts(t *testing.T) {
	w := newWorld(t, rule("network"))
	for range 3 {
		w.restart()
		for range 100 {
			w.sets("Programmed")
			w.step()
			w.pass(time.Minute)
		}
	}
	if w.writes != 9 {
		t.Errorf("%d writes by three processes", w.writes)
	}
}

// A network plugin that sets the gate itself works: the agent takes its True over with one write, and none
// follows when the plugin writes its own reason again.
func TestAForeignTrueIsTakenOver(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.sets("Programmed")
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	for range 10 {
		w.pass(time.Minute)
		w.sets("Programmed")
		w.settle()
	}
	w.expect("True Programmed", openKey)
	if tally := w.tally(); w.writes != 1 || tally.Open != 1 || tally.Foreign != 0 {
		t.Errorf("%d writes, %+v", w.writes, tally)
	}
	w.sandbox("10.0.0.8")
	w.step()
	w.expect("False NewSandbox", "closed 10.0.0.8 b1 2026-11-16T12:10:00Z again")
}

// Traffic that flows is not interrupted. The latch does not open because of it.
func TestAPodThatWasReadyKeepsAForeignTrue(t *testing.T) {
	for name, tc := range map[string]struct {
		ready func(w *world)
		want  string
	}{
		"Ready":                        {func(w *world) { w.ready("True", w.now) }, "True Programmed"},
		"Ready before, in its sandbox": {func(w *world) { w.ready("False", w.now.Add(2*time.Minute)) }, "True Programmed"},
		"never Ready":                  {func(w *world) { w.ready("False", w.now.Add(-time.Second)) }, "False ComponentsNotReady"},
		"never Ready, and quick":       {func(w *world) { w.ready("False", w.now.Add(time.Second)) }, "False ComponentsNotReady"},
		"no kubelet has written it":    {func(*world) {}, "False ComponentsNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", startHold))
			w.latch()
			tc.ready(w)
			w.pass(5 * time.Minute)
			w.sets("Programmed")
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); string(is.Status)+" "+is.Reason != tc.want || w.latchIsOpen() {
				t.Errorf("the gate is %s %s, the key %q", is.Status, is.Reason, w.subject.Pod.Annotations[v1alpha1.LatchAnnotation])
			}
		})
	}
}

// Nothing is set back before a component has answered: a prober may not have asked yet.
func TestForeignTrueIsKeptUntilTheFirstAnswer(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path"))))
	w.sets("Programmed")
	w.settle()
	w.expect("True Programmed", "")
	if w.last.Verdicts[0].Undecided() {
		t.Error("it is reported before a component was asked")
	}
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
	w.settle()
	w.expect("False ComponentsNotReady", closedKey)
}

// A network plugin may be ahead of the kubelet: until the pod has its sandbox and address nothing is written.
func TestAForeignTrueMayComeBeforeTheAddress(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.address("")
	w.sets("Programmed")
	w.settle()
	w.expect("True Programmed", "")
	if w.last.Verdicts[0].Undecided() {
		t.Error("it is reported before the pod has an address")
	}
	w.pass(time.Second)
	w.address("10.0.0.7")
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

// A foreign True neither resets nor passes the deadline of the rule.
func TestForeignTrueDoesNotResetTheDeadline(t *testing.T) {
	w := newWorld(t, rule("network", startHold, deadline(30, v1alpha1.DeadlineOpen)))
	w.latch()
	w.pass(20 * time.Second)
	w.sets("Programmed")
	w.settle()
	w.expect("False ComponentsNotReady", closedKey)
	w.pass(10 * time.Second)
	w.sets("Programmed")
	w.settle()
	w.expect("True DeadlineExceeded", openKey)
}

// An account that may patch pods/status can copy reason and key, too. An agent that has decided before
// does not believe it; one that has just started believes what fits together.
func TestAForgedDecision(t *testing.T) {
	always := func(reason string) string { return "always " + reason }
	for name, tc := range map[string]struct {
		reason, key string
		restarted   string // what an agent believes that has just started
	}{
		"all components":           {v1alpha1.ReasonAllReady, openKey, "True " + v1alpha1.ReasonAllReady},
		"a deadline":               {v1alpha1.ReasonDeadline, openKey, "True " + v1alpha1.ReasonDeadline},
		"a dead agent":             {v1alpha1.ReasonAgentGone, always(v1alpha1.ReasonAgentGone), "True " + v1alpha1.ReasonAgentGone},
		"a deleted rule":           {v1alpha1.ReasonRuleDeleted, always(v1alpha1.ReasonRuleDeleted), "True " + v1alpha1.ReasonRuleDeleted},
		"no rule":                  {v1alpha1.ReasonNotSelected, always(v1alpha1.ReasonNotSelected), "True " + v1alpha1.ReasonNotSelected},
		"the reason alone":         {v1alpha1.ReasonAllReady, closedKey, "False " + v1alpha1.ReasonWaiting},
		"the key alone":            {"Programmed", openKey, "True Programmed"},
		"a key of another sandbox": {v1alpha1.ReasonAllReady, "open 10.0.0.9 b1 2026-11-16T11:00:00Z", "False " + v1alpha1.ReasonNewSandbox},
		"no key":                   {v1alpha1.ReasonAllReady, "", "False " + v1alpha1.ReasonWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", startHold))
			w.latch()
			w.pass(6 * time.Second)
			w.settle()
			w.expect("False ComponentsNotReady", closedKey)
			for range 100 {
				w.forges(tc.reason, tc.key)
				w.step()
				w.pass(time.Second)
			}
			if w.writes > 16 {
				t.Errorf("%d writes in 100 s", w.writes)
			}
			w.setComponent("True")
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); is.Reason != v1alpha1.ReasonAllReady || !w.latchIsOpen() {
				t.Errorf("with all components ready the gate is %s %s, the key %q", is.Status, is.Reason, w.subject.Pod.Annotations[v1alpha1.LatchAnnotation])
			}
		})
		t.Run(name+", then a restart", func(t *testing.T) {
			w := newWorld(t, rule("network", startHold))
			w.latch()
			w.forges(tc.reason, tc.key)
			w.step()
			if is := w.condition(v1alpha1.DefaultGate); string(is.Status)+" "+is.Reason != tc.restarted {
				t.Errorf("the gate is %s %s, want %s", is.Status, is.Reason, tc.restarted)
			}
		})
	}
}

// An agent whose Lease had expired keeps what the manager opened, if the rule lets a late pod be
// opened.
func TestAnAgentKeepsWhatTheManagerOpened(t *testing.T) {
	for name, tc := range map[string]struct {
		waited time.Duration
		action v1alpha1.DeadlineAction
		want   string
	}{
		"after the deadline":        {time.Minute, v1alpha1.DeadlineOpen, "True AgentGone"},
		"before the deadline":       {20 * time.Second, v1alpha1.DeadlineOpen, "False ComponentsNotReady"},
		"a deadline that reports":   {time.Minute, v1alpha1.DeadlineReport, "False ComponentsNotReady"},
		"a rule without a deadline": {time.Minute, "", "False ComponentsNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			options := []ruleOption{startHold}
			if tc.action != "" {
				options = append(options, deadline(30, tc.action))
			}
			w := newWorld(t, rule("network", options...))
			w.latch()
			w.pass(6 * time.Second)
			w.settle()
			w.pass(tc.waited)
			w.forges(v1alpha1.ReasonAgentGone, "always AgentGone")
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); string(is.Status)+" "+is.Reason != tc.want {
				t.Errorf("the gate is %s %s, want %s", is.Status, is.Reason, tc.want)
			}
		})
	}
}

// A closed key can belong to another gate of the pod that holds the start: the open one is a decision.
func TestAClosedKeyOfAnotherGate(t *testing.T) {
	for name, forged := range map[string]bool{"closed": false, "set to True by another account": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", startHold), rule("other", startHold, gate(otherGate), components(byReach("path"))))
			w.secondGate()
			w.latch()
			w.setComponent("True")
			w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
			w.settle()
			w.expect("True AllComponentsReady", closedKey)
			w.setComponent("False")
			w.restart()
			if forged {
				w.set(corev1.PodCondition{Type: otherGate, Status: "True", Reason: "Programmed", LastTransitionTime: metav1.NewTime(w.now)})
			}
			w.settle()
			w.expect("True AllComponentsReady", closedKey)
		})
	}
}

const otherGate = "example.com/other"

// secondGate gives the pod another gate of a rule.
func (w *world) secondGate() {
	w.subject.Pod.Spec.ReadinessGates = append(w.subject.Pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: otherGate})
	w.subject.Pod.Annotations[v1alpha1.GatesAnnotation] += " " + otherGate
}

// What the manager has opened on a node without an agent is not written again, and an agent that starts later
// keeps it: also where the latch key could not be written.
func TestAnOrphanIsWrittenOnce(t *testing.T) {
	late := deadline(30, v1alpha1.DeadlineOpen)
	for name, tc := range map[string]struct {
		build func(t *testing.T) *world
		full  bool
	}{
		"another gate holds the latch": {func(t *testing.T) *world {
			w := newWorld(t, rule("network", late), rule("other", startHold, gate(otherGate)))
			w.secondGate()
			w.latch()
			return w
		}, false},
		"its annotations are full": {func(t *testing.T) *world { return newWorld(t, rule("network", late)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.build(t)
			w.pass(31 * time.Second)
			patch := podrule.Orphan(w.rules, &w.subject, w.now).Patch
			if patch == nil || len(patch.Conditions) != 1 {
				t.Fatalf("it writes %+v", patch)
			}
			if tc.full {
				patch.Key = ""
			}
			w.write(patch)
			w.restart()
			w.pass(15 * time.Second)
			if patch := podrule.Orphan(w.rules, &w.subject, w.now).Patch; patch != nil {
				t.Errorf("it writes %+v again", patch)
			}
			w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); is.Status != "True" {
				t.Errorf("an agent sets it to %s %s", is.Status, is.Reason)
			}
		})
	}
}

// The key of an orphan with a latch is written as soon as there is room for it.
func TestTheKeyOfAnOrphanIsTriedAgain(t *testing.T) {
	w := newWorld(t, rule("network", startHold, deadline(30, v1alpha1.DeadlineOpen)))
	w.latch()
	w.pass(31 * time.Second)
	patch := podrule.Orphan(w.rules, &w.subject, w.now).Patch
	patch.Key = "" // no room
	w.write(patch)
	w.pass(15 * time.Second)
	patch = podrule.Orphan(w.rules, &w.subject, w.now).Patch
	if patch == nil || len(patch.Conditions) > 0 || patch.Key != "always AgentGone" {
		t.Errorf("it writes %+v", patch)
	}
}

// A network plugin that sets its own reason again costs no write, and the gate is still closed when a
// component is no longer ready: before and after a restart of the agent.
func TestAPluginMayKeepItsReason(t *testing.T) {
	w := newWorld(t, rule("network", closesOnNotReady))
	w.setComponent("True")
	w.settle()
	for range 3 {
		w.sets("Programmed")
		w.settle()
		w.restart()
		w.settle()
		w.expect("True Programmed", openKey)
	}
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
	seen := w.subject
	seen.History = nil // as the command line sees it
	if d := podrule.Decide(w.rules, &seen, nil, w.now); !d.Verdicts[0].Open || d.Verdicts[0].Foreign {
		t.Errorf("without a history it is decided as %+v", d.Verdicts[0])
	}
	w.setComponent("False")
	w.settle()
	w.expect("False ComponentsNotReady", closedKey)
}

// The touch of a key is no attempt against a foreign True of another gate, and does not wait for one.
func TestTouchesAndSetBacksAreCountedApart(t *testing.T) {
	w := newWorld(t, rule("network", startHold), rule("other", gate(otherGate), components(byReach("path"))))
	w.secondGate()
	w.latched(runs(noon))
	w.setComponent("True")
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
	foreign := func() {
		w.set(corev1.PodCondition{Type: otherGate, Status: "True", Reason: "Programmed", LastTransitionTime: metav1.NewTime(w.now)})
	}
	setBacks := 0
	var touches []time.Duration
	for range 600 {
		foreign()
		if w.step() {
			w.subject.Written = w.now
			if w.last.Patch.Touch {
				touches = append(touches, w.now.Sub(noon).Truncate(time.Second))
			}
			if w.condition(otherGate).Status == "False" {
				setBacks++
			}
		}
		w.pass(100 * time.Millisecond)
	}
	if setBacks != 3 || len(touches) != 5 || touches[1] != 4*time.Second {
		t.Errorf("set back %d times, touched after %v", setBacks, touches)
	}
}

// A removed key does not hide that the pod has a new sandbox.
func TestARemovedKeyDoesNotHideANewSandbox(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.pass(time.Minute)
	w.sandbox("10.0.0.8")
	w.started()
	for range 3 {
		delete(w.subject.Pod.Annotations, v1alpha1.LatchAnnotation)
		w.settle()
		if is := w.condition(v1alpha1.DefaultGate); is.Status != "False" {
			t.Fatalf("the gate is %s %s", is.Status, is.Reason)
		}
		w.pass(time.Minute)
	}
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.8 b1 2026-11-16T12:01:00Z again")
}

// A restart of the agent does not restart the deadline under a foreign True.
func TestARestartDoesNotRestartTheDeadline(t *testing.T) {
	w := newWorld(t, rule("network", startHold, deadline(30, v1alpha1.DeadlineOpen)))
	w.latch()
	w.pass(6 * time.Second)
	w.settle()
	w.expect("False ComponentsNotReady", closedKey)
	w.pass(24 * time.Second)
	w.sets("Programmed")
	w.restart()
	w.subject.Seen = w.now
	w.settle()
	w.expect("True DeadlineExceeded", openKey)
}

// Where there is no agent, the manager closes nothing, and opens the latch for its own reasons only.
func TestAForeignTrueOfAnOrphan(t *testing.T) {
	w := newWorld(t, rule("network", startHold, deadline(30, v1alpha1.DeadlineOpen)))
	w.latch()
	w.sets("Programmed")
	w.pass(29 * time.Second)
	orphan := podrule.Orphan(w.rules, &w.subject, w.now)
	if orphan.Patch != nil || !orphan.Verdicts[0].Foreign {
		t.Fatalf("it writes %+v: %+v", orphan.Patch, orphan.Verdicts)
	}
	w.pass(time.Second)
	w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch)
	w.expect("True AgentGone", "always AgentGone")
}

// A write without a response may have taken effect. A gate that such a write opened is a decision of Readygate.
func TestUnansweredOpenIsNotAForeignTrue(t *testing.T) {
	w := newWorld(t, rule("network", startHold))
	w.latched(runs(noon))
	w.setComponent("False")
	w.settle()
	w.setComponent("True")
	d := w.decide()
	w.write(d.Patch)
	w.subject.History.RecordUnanswered(&w.subject, &d, w.now)
	w.pass(time.Second)
	w.setComponent("False")
	w.settle()
	w.expect("True AllComponentsReady", openKey)
	if v := w.last.Verdicts[0]; v.Foreign || !v.Open {
		t.Errorf("the verdict is %+v", v)
	}
}

// Attempts to set a gate back also count if the API server does not respond.
func TestAnUnansweredSetBackCounts(t *testing.T) {
	w := newWorld(t, rule("network", startHold))
	w.latched(runs(noon))
	w.setComponent("False")
	w.settle()
	attempts := 0
	for range 600 {
		w.pass(100 * time.Millisecond)
		w.sets("Programmed")
		if d := w.decide(); d.Patch != nil && len(d.Patch.Conditions) > 0 {
			attempts++
			w.subject.History.RecordUnanswered(&w.subject, &d, w.now)
		}
	}
	if attempts != 3 {
		t.Errorf("it was set back %d times, want 3", attempts)
	}
}
