package podgate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A component that becomes unready closes the gate only if the rule requires it.
func TestGateClosesAgainOnlyWithClosePolicyOnNotReady(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	never, always := s.rule("never"), s.rule("always", closesOnNotReady)
	agent := s.startAgent()
	s.enforce(never, always)
	stays, changes := s.pod("never"), s.pod("always")
	for _, pod := range []*corev1.Pod{stays, changes} {
		s.says(pod, corev1.ConditionTrue)
		s.sandbox(pod, "127.0.6.1", longAgo())
	}
	s.wantGate(stays, never.Spec.Gate, allReady)
	s.wantGate(changes, always.Spec.Gate, allReady)

	for _, pod := range []*corev1.Pod{stays, changes} {
		s.says(pod, corev1.ConditionFalse)
	}
	s.wantGate(changes, always.Spec.Gate, waits, "waiting for policy (condition "+programmed+" is False)")
	s.wantDecided(agent, always.UID, 0, 1)
	s.says(changes, corev1.ConditionTrue)
	s.wantGate(changes, always.Spec.Gate, allReady)
	s.wantDecided(agent, always.UID, 1, 0)

	if err := complaint(s.get(stays), never.Spec.Gate, allReady); err != nil {
		t.Error(err)
	}
	if n := s.writes(stays); n != 1 {
		t.Errorf("%s was written %d times", stays.Name, n)
	}
}
