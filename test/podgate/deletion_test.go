package podgate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

const notSelected = "True " + v1alpha1.ReasonNotSelected

// wantOpenForGood checks a pod whose gate no rule requires anymore: the gate is open, and so is its latch,
// for every sandbox.
func (s *stage) wantOpenForGood(pod *corev1.Pod, gate, reason string) {
	s.t.Helper()
	got := s.get(pod)
	if err := complaint(got, gate, "True "+reason); err != nil {
		s.t.Errorf("%s: %v", pod.Name, err)
	}
	if key := got.Annotations[v1alpha1.LatchAnnotation]; key != "always "+reason {
		s.t.Errorf("%s has the key %q", pod.Name, key)
	}
}

// The manager removes the finalizer last: when a rule is gone, all its pods are open.
func TestADeletedRuleOpensItsPods(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.startAgent()
	s.enforce(rule)
	waiting, early := s.pod("web", named("waiting")), s.pod("web", named("early"))
	s.sandbox(waiting, "127.0.9.1", longAgo())
	s.wantGate(waiting, rule.Spec.Gate, waits)
	s.remove(rule)
	for _, pod := range []*corev1.Pod{waiting, early} {
		s.wantOpenForGood(pod, rule.Spec.Gate, v1alpha1.ReasonRuleDeleted)
	}
	if gates, _ := gatesOf(s.pod("web", named("later"))); len(gates) > 0 {
		t.Errorf("a pod that was created when the rule was gone has %v", gates)
	}
}

func TestADeletedRuleOpensItsPodsWhereThereIsNoAgent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.enforce(rule)
	waiting, early := s.pod("web", named("waiting")), s.pod("web", named("early"))
	s.sandbox(waiting, "127.0.9.2", longAgo())
	s.remove(rule)
	for _, pod := range []*corev1.Pod{waiting, early} {
		s.wantOpenForGood(pod, rule.Spec.Gate, v1alpha1.ReasonRuleDeleted)
	}
}

// A pod that is not bound when its rule is deleted would wait indefinitely on a node without an agent.
func TestADeletedRuleOpensPodsThatAreNotOnANode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.enforce(rule)
	pod := s.pod("web", unscheduled)
	s.remove(rule)
	s.wantOpenForGood(pod, rule.Spec.Gate, v1alpha1.ReasonRuleDeleted)
}

// If the annotations of a pod are full, there is no room for its latch key. Its gate is opened
// nevertheless, and its rule can be deleted.
func TestAPodWithFullAnnotationsDoesNotDelayADeletedRule(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", startHold)
	s.startAgent()
	s.enforce(rule)
	full := func(p *corev1.Pod) {
		const filler = "example.com/filler"
		left := validation.TotalAnnotationSizeLimitB - len(filler) - len(v1alpha1.GatesAnnotation) - len(rule.Spec.Gate)
		p.Annotations = map[string]string{filler: strings.Repeat("x", left)}
	}
	ready, waiting := s.pod("web", named("ready"), full), s.pod("web", named("waiting"), full)
	s.says(ready, corev1.ConditionTrue)
	for _, pod := range []*corev1.Pod{ready, waiting} {
		s.sandbox(pod, "127.0.9.5", longAgo())
	}
	s.wantGate(ready, rule.Spec.Gate, allReady)
	s.wantGate(waiting, rule.Spec.Gate, waits)
	s.wantEvent(ready, v1alpha1.EventFull, "the annotations of the pod are full", v1alpha1.LatchAnnotation)
	s.remove(rule)
	if err := complaint(s.get(waiting), rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted); err != nil {
		t.Error(err)
	}
}

// If one of two rules with the same gate is deleted, the gate still waits for the other one.
func TestAGateStaysClosedForAnotherRule(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const attached = "net.example.com/attached"
	first, second := s.rule("first"), s.rule("second", components(byPodCondition("cni", attached)))
	second.Spec.PodSelector, second.Spec.Gate = first.Spec.PodSelector, first.Spec.Gate
	agent := s.startAgent()
	s.enforce(first, second)
	pod := s.pod("first")
	s.sandbox(pod, "127.0.9.3", longAgo())
	s.wantGate(pod, first.Spec.Gate, waits, first.Name+"/policy", second.Name+"/cni")
	s.remove(first)
	s.wantGate(pod, first.Spec.Gate, waits, "waiting for cni (the pod has no condition "+attached+")")
	s.wantDecided(agent, second.UID, 0, 1)
	if got := gateOf(s.get(pod), first.Spec.Gate); got != waits {
		t.Errorf("the gate is %s", got)
	}
	s.condition(pod, attached, corev1.ConditionTrue, longAgo())
	s.wantGate(pod, first.Spec.Gate, allReady, second.Name)
}

// A rule that no longer selects a pod does not keep its gate closed.
func TestAPodThatIsNoLongerSelectedIsOpened(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	byRule, byLabel := s.rule("by-rule"), s.rule("by-label")
	s.startAgent()
	s.enforce(byRule, byLabel)
	first, second := s.pod("by-rule"), s.pod("by-label")
	for _, pod := range []*corev1.Pod{first, second} {
		s.sandbox(pod, "127.0.9.4", longAgo())
	}
	s.wantGate(first, byRule.Spec.Gate, waits)
	s.wantGate(second, byLabel.Spec.Gate, waits)

	s.Patch(t, byRule, func() { byRule.Spec.PodSelector = selector("app", "none") })
	s.Patch(t, second, func() { second.Labels["app"] = "none" })
	s.wantGate(first, byRule.Spec.Gate, notSelected)
	s.wantGate(second, byLabel.Spec.Gate, notSelected)
	for pod, gate := range map[*corev1.Pod]string{first: byRule.Spec.Gate, second: byLabel.Spec.Gate} {
		s.wantOpenForGood(pod, gate, v1alpha1.ReasonNotSelected)
		if message := conditionOf(s.get(pod), gate).Message; !strings.Contains(message, "no PodReadinessRule selects the pod anymore") {
			t.Errorf("the message is %q", message)
		}
	}
}
