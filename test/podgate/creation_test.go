package podgate_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// The response of the API server to the creation already has the gate and the annotation with its rules:
// no pod can be Ready without the gate.
func TestSelectedPodsAreCreatedWithTheGate(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	s.enforce(rule)
	const own = "example.com/own"
	gate := rule.Spec.Gate
	other := s.id + "-other"
	s.namespace(other, nil)
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		gates  []string
		noted  string
	}{
		"a pod":                       {func(*corev1.Pod) {}, []string{gate}, gate},
		"one with a generated name":   {func(p *corev1.Pod) { p.Name, p.GenerateName = "", "web-" }, []string{gate}, gate},
		"one that is not on a node":   {unscheduled, []string{gate}, gate},
		"one with a gate of its own":  {withGate(own), []string{own, gate}, gate},
		"one that has the gate":       {withGate(gate), []string{gate}, gate},
		"one that does not opt out":   {labelled(v1alpha1.OptOutLabel, "false"), []string{gate}, gate},
		"one that opts out":           {optOut, nil, ""},
		"one with other labels":       {labelled("app", "other"), nil, ""},
		"one without labels":          {func(p *corev1.Pod) { p.Labels = nil }, nil, ""},
		"one in the node's network":   {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, nil, ""},
		"one that a kubelet runs":     {mirror, nil, ""},
		"one of another namespace":    {func(p *corev1.Pod) { p.Namespace = other }, nil, ""},
		"one with a gate, not chosen": {func(p *corev1.Pod) { withGate(own)(p); optOut(p) }, []string{own}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := s.in(t).pod("web", tc.change)
			if gates, noted := gatesOf(pod); !slices.Equal(gates, tc.gates) || noted != tc.noted {
				t.Errorf("it has the gates %v and the note %q, want %v and %q", gates, noted, tc.gates, tc.noted)
			}
			if len(pod.Spec.InitContainers) > 0 {
				t.Errorf("no rule requires %v", pod.Spec.InitContainers)
			}
		})
	}
}

func withGate(gate string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: corev1.PodConditionType(gate)})
	}
}

// mirror makes a pod a mirror pod of a kubelet.
func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} }

// A pod that two rules select gets each gate once, in the order of the rules.
func TestAPodHasTheGatesOfAllItsRules(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first, same, other := s.rule("web"), s.rule("same"), s.rule("other")
	for _, rule := range []*v1alpha1.PodReadinessRule{same, other} {
		rule.Spec.PodSelector = first.Spec.PodSelector
	}
	same.Spec.Gate = first.Spec.Gate
	s.enforce(first, same, other)
	gates, _ := gatesOf(s.pod("web"))
	if slices.Sort(gates); !slices.Equal(gates, []string{other.Spec.Gate, first.Spec.Gate}) {
		t.Errorf("it has the gates %v", gates)
	}
}

// The pods of these namespaces are needed to open gates: a rule selects them only if it names the namespace.
func TestReservedNamespacesAreSelectedOnlyByName(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	broad := s.rule("broad", func(r *v1alpha1.PodReadinessRule) {
		r.Spec.NamespaceSelector, r.Spec.PodSelector = nil, selector("stage", s.id)
	})
	byName := s.rule("by-name", func(r *v1alpha1.PodReadinessRule) {
		r.Spec.NamespaceSelector = &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []v1alpha1.LabelValue{metav1.NamespaceSystem, admission.ManagerNamespace},
		}}}
		r.Spec.PodSelector = selector("stage", s.id)
	})
	s.enforce(broad, byName)
	for namespace, want := range map[string]string{
		s.id: broad.Spec.Gate, metav1.NamespaceSystem: byName.Spec.Gate, admission.ManagerNamespace: byName.Spec.Gate,
	} {
		s.account(namespace)
		pod := s.pod(s.id, unscheduled, labelled("stage", s.id), func(p *corev1.Pod) { p.Namespace = namespace })
		if gates, noted := gatesOf(pod); !slices.Equal(gates, []string{want}) || noted != want {
			t.Errorf("in %s it has the gates %v and the note %q, want %s", namespace, gates, noted, want)
		}
	}
}
