package podgate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// A pod template can contain the gate and the annotation. Without MutatingAdmissionPolicy there is no other way.
func TestGatesInPodTemplatesOpen(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web", ofTemplates)
	s.Create(t, rule)
	s.startAgent()
	ready, late := s.pod("web", fromTemplate), s.pod("web", fromTemplate, named("late"))
	for _, pod := range []*corev1.Pod{ready, late} {
		s.sandbox(pod, "127.0.14.1", longAgo())
		s.wantGate(pod, v1alpha1.DefaultGate, waits, "policy")
	}
	s.says(ready, corev1.ConditionTrue)
	s.wantGate(ready, v1alpha1.DefaultGate, allReady)
	s.remove(rule)
	s.wantGate(late, v1alpha1.DefaultGate, "True "+v1alpha1.ReasonRuleDeleted)
}

// ofTemplates sets the gate that pod templates contain.
func ofTemplates(r *v1alpha1.PodReadinessRule) { r.Spec.Gate = v1alpha1.DefaultGate }

// fromTemplate adds what docs/concepts/pod-gates.md adds to a pod template.
func fromTemplate(p *corev1.Pod) {
	withGate(v1alpha1.DefaultGate)(p)
	p.Annotations = map[string]string{v1alpha1.GatesAnnotation: v1alpha1.DefaultGate}
}
