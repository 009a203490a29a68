package view_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/plugin/view"
)

const (
	programmed = "policy.example.com/programmed"
	flannel    = "network.example.com/FlannelReady"
)

type podRuleOption func(*podv1alpha1.PodReadinessRule)

// podRule is a rule for all pods, with these components.
func podRule(name string, options ...podRuleOption) *podv1alpha1.PodReadinessRule {
	r := &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(dawn)},
		Spec:       podv1alpha1.PodReadinessRuleSpec{Gate: podv1alpha1.DefaultGate, Components: []podv1alpha1.Component{policyEngine()}},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

func policyEngine() podv1alpha1.Component {
	return podv1alpha1.Component{Name: "policy", PodCondition: &podv1alpha1.ConditionComponent{Type: programmed}}
}

func flannelOnNode() podv1alpha1.Component {
	return podv1alpha1.Component{Name: "flannel", NodeCondition: &podv1alpha1.ConditionComponent{Type: flannel}}
}

func pathToPod() podv1alpha1.Component {
	return podv1alpha1.Component{Name: "path", Reach: &podv1alpha1.ReachComponent{}}
}

func parts(all ...podv1alpha1.Component) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) { r.Spec.Components = all }
}

func due(seconds int32, action podv1alpha1.DeadlineAction) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) { r.Spec.DeadlineSeconds, r.Spec.OnDeadline = &seconds, action }
}

func opens(gate string) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) { r.Spec.Gate = gate }
}

func goes(r *podv1alpha1.PodReadinessRule) { r.DeletionTimestamp = &metav1.Time{Time: noon} }

func ofNamespaces(label string) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) {
		r.Spec.NamespaceSelector = &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{label: "on"}}
	}
}

func ofPods(app podv1alpha1.LabelValue) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) {
		r.Spec.PodSelector = &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{"app": app}}
	}
}

type podOption func(*corev1.Pod)

// web returns a pod with the default gate of a rule. It has had its sandbox for a minute.
func web(options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "uid-web", CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Minute)),
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{podv1alpha1.GatesAnnotation: podv1alpha1.DefaultGate},
		},
		Spec: corev1.PodSpec{NodeName: "w-1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}},
	}
	sandboxed(p)
	for _, option := range options {
		option(p)
	}
	return p
}

func sandboxed(p *corev1.Pod) {
	p.Status.PodIP, p.Status.PodIPs = "10.0.0.7", []corev1.PodIP{{IP: "10.0.0.7"}}
	set(p, string(corev1.PodReadyToStartContainers), True, "", "", noon.Add(-time.Minute))
}

func homeless(p *corev1.Pod) {
	p.Status = corev1.PodStatus{}
}

// podSays gives the pod the condition of the policy engine.
func podSays(status corev1.ConditionStatus) podOption {
	return func(p *corev1.Pod) { set(p, programmed, status, "", "", noon.Add(-30*time.Second)) }
}

// gateIs gives the pod the condition of the default gate, and the latch key that the agent writes with True.
func gateIs(status corev1.ConditionStatus, reason, message string) podOption {
	return func(p *corev1.Pod) {
		if status == True {
			p.Annotations[podv1alpha1.LatchAnnotation] = "open 10.0.0.7 b1 2026-03-01T11:59:00Z"
		}
		set(p, podv1alpha1.DefaultGate, status, reason, message, noon.Add(-40*time.Second))
	}
}

func set(p *corev1.Pod, conditionType string, status corev1.ConditionStatus, reason, message string, at time.Time) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == conditionType })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodConditionType(conditionType), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at),
	})
}

func keyed(value string) podOption {
	return func(p *corev1.Pod) { p.Annotations[podv1alpha1.LatchAnnotation] = value }
}

func latched(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: podv1alpha1.LatchName}}
}

func unscheduled(p *corev1.Pod) {
	homeless(p)
	p.Spec.NodeName = ""
}

func optedOut(p *corev1.Pod) { p.Labels[podv1alpha1.OptOutLabel] = podv1alpha1.OptOut }

func gateless(p *corev1.Pod) { p.Spec.ReadinessGates, p.Annotations = nil, map[string]string{} }

// here is a place with a live agent, and a node with this status of flannel's condition.
func here(status corev1.ConditionStatus) view.Place {
	node := worker("w-1")
	node.Status.NodeInfo.BootID = "b1"
	if status != "" {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: flannel, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-5 * time.Minute))})
	}
	return view.Place{
		Namespace: map[string]string{corev1.LabelMetadataName: "shop"}, Node: node,
		Agent: view.Agent{Known: true, Alive: true, Renewed: noon.Add(-10 * time.Second)},
	}
}

// without is the place with no live agent.
func without(place view.Place) view.Place {
	place.Agent = view.Agent{Known: true, Renewed: noon.Add(-10 * time.Minute)}
	return place
}

// agentless is the place without an agent's Lease.
func agentless(place view.Place) view.Place {
	place.Agent = view.Agent{Known: true}
	return place
}

// unseen is the place of a node that may not be read.
func unseen(place view.Place) view.Place {
	place.Node = nil
	return place
}

// stands sets the condition Enforced of the rule.
func stands(status metav1.ConditionStatus, reason, message string) podRuleOption {
	return func(r *podv1alpha1.PodReadinessRule) {
		r.Status.Conditions = []metav1.Condition{{Type: podv1alpha1.ConditionEnforced, Status: status, Reason: reason, Message: message, ObservedGeneration: r.Generation}}
	}
}

func podRules(all ...*podv1alpha1.PodReadinessRule) []*podv1alpha1.PodReadinessRule { return all }

// agent writes the pod's conditions as an agent does that gets these answers.
func agent(t *testing.T, p *corev1.Pod, place view.Place, rules []*podv1alpha1.PodReadinessRule, answer podrule.Answer) {
	t.Helper()
	subject := &podrule.Subject{Pod: p, Namespace: place.Namespace, Node: podrule.Node{Conditions: place.Node.Status.Conditions, BootID: "b1"}}
	d := podrule.Decide(podrule.NewRules(rules), subject, func(podrule.Probe) (podrule.Answer, bool) { return answer, true }, noon)
	if d.Patch == nil {
		t.Fatalf("the agent writes nothing: %+v", d)
	}
	for _, c := range d.Patch.Conditions {
		set(p, string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime.Time)
	}
	p.Annotations[podv1alpha1.LatchAnnotation] = d.Patch.Key
}
