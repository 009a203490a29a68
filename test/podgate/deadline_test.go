package podgate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// The agent emits an event for a pod that has waited too long, and the pod still waits. A previous agent wrote the time.
func TestALatePodIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", deadline(600, v1alpha1.DeadlineReport))
	s.startAgent()
	s.enforce(rule)
	late, patient := s.pod("web", named("late")), s.pod("web", named("patient"))
	s.condition(late, rule.Spec.Gate, corev1.ConditionFalse, time.Now().Add(-20*time.Minute))
	s.sandbox(late, "127.0.7.1", time.Now().Add(-21*time.Minute))
	s.sandbox(patient, "127.0.7.2", longAgo())
	for _, pod := range []*corev1.Pod{late, patient} {
		s.wantGate(pod, rule.Spec.Gate, waits, "waiting for policy")
	}
	s.wantEvent(late, v1alpha1.EventLate, "policy", "the pod has no condition "+programmed, "10m0s", rule.Name)
	got := s.wantRule(rule, "one is late", counts(v1alpha1.PodSummary{Gated: 2, Waiting: 2, Late: 1}))
	if listed := got.Status.WaitingPods; len(listed) != 2 || listed[0].Name != late.Name || listed[0].Node != s.id || !strings.Contains(listed[0].Why, "waiting for policy") {
		t.Errorf("listed are %+v", listed)
	}
	if events, err := s.eventsAbout(t.Context(), patient); err != nil || len(events) > 0 {
		t.Errorf("events about a pod that is not late: %v, %v", events, err)
	}

	s.says(late, corev1.ConditionTrue)
	s.wantGate(late, rule.Spec.Gate, allReady)
	s.wantRule(rule, "none is late", counts(v1alpha1.PodSummary{Gated: 2, Open: 1, Waiting: 1}))
}

// With onDeadline Open the agent opens a late pod, and the reason of the condition stays.
func TestLatePodIsOpenedWithOnDeadlineOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", deadline(10, v1alpha1.DeadlineOpen), startHold)
	agent := s.startAgent()
	s.enforce(rule)
	pod := s.pod("web")
	s.sandbox(pod, "127.0.7.3", longAgo())
	opened := "True " + v1alpha1.ReasonDeadline
	got := s.wantGate(pod, rule.Spec.Gate, opened, "opened after the deadline of 10s", "waiting for policy (the pod has no condition "+programmed+")")
	if key := got.Annotations[v1alpha1.LatchAnnotation]; !strings.HasPrefix(key, "open 127.0.7.3 ") {
		t.Errorf("the latch is not open: %q", key)
	}
	s.wantEvent(pod, v1alpha1.EventOpened, "opened after the deadline of 10s", "policy")
	s.says(pod, corev1.ConditionTrue)
	s.wantDecided(agent, rule.UID, 1, 0)
	if err := complaint(s.get(pod), rule.Spec.Gate, opened); err != nil {
		t.Error(err)
	}
}
