package view_test

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

const (
	True    = corev1.ConditionTrue
	False   = corev1.ConditionFalse
	Unknown = corev1.ConditionUnknown
)

// Nodes join at dawn; explanations are computed at noon.
var (
	dawn = time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	noon = dawn.Add(time.Hour)
)

type ruleOption func(*v1alpha1.NodeReadinessRule)

// rule is an enforced continuous rule that holds workers until its own condition is True.
func rule(name string, options ...ruleOption) *v1alpha1.NodeReadinessRule {
	r := &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(dawn)},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: "example.com/" + name, RequiredStatus: True}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/" + name, Value: "pending", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"role": "worker"}},
		},
		Status: v1alpha1.NodeReadinessRuleStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted},
			{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, Message: "all is well"},
			{Type: v1alpha1.ConditionTaintedAtCreation, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPolicyActive},
		}},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

func bootstrapOnly(r *v1alpha1.NodeReadinessRule) {
	r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly
}

func dryRun(r *v1alpha1.NodeReadinessRule)     { r.Spec.DryRun = true }
func unobserved(r *v1alpha1.NodeReadinessRule) { r.Status = v1alpha1.NodeReadinessRuleStatus{} }
func deleting(r *v1alpha1.NodeReadinessRule)   { r.DeletionTimestamp = &metav1.Time{Time: noon} }
func younger(r *v1alpha1.NodeReadinessRule) {
	r.CreationTimestamp = metav1.NewTime(dawn.Add(time.Minute))
}

func effect(e corev1.TaintEffect) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = e }
}

func sameTaintAs(name string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Key = "readiness.k8s.io/" + name }
}

func anyOf(types ...string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.ConditionPolicy, r.Spec.Conditions = v1alpha1.ConditionPolicyAnyOf, nil
		for _, t := range types {
			r.Spec.Conditions = append(r.Spec.Conditions, v1alpha1.ConditionRequirement{Type: t, RequiredStatus: True})
		}
	}
}

func refuses(node, message string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Status.FailedNodes = append(r.Status.FailedNodes, v1alpha1.NodeFailure{NodeName: node, Message: message})
	}
}

func rules(all ...*v1alpha1.NodeReadinessRule) []*v1alpha1.NodeReadinessRule { return all }

type nodeOption func(*corev1.Node)

// worker is a node that is Ready and that all rules select.
func worker(name string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(dawn), Labels: map[string]string{"role": "worker"}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: True}}},
	}
	for _, option := range options {
		option(n)
	}
	return n
}

func labelled(role string) nodeOption { return func(n *corev1.Node) { n.Labels["role"] = role } }
func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	tainted(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)(n)
}

func tainted(key string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

// says adds the condition of a rule to the node, ten minutes old.
func says(name string, status corev1.ConditionStatus) nodeOption {
	return func(n *corev1.Node) {
		at := metav1.NewTime(noon.Add(-10 * time.Minute))
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType("example.com/" + name), Status: status, Reason: "AgentSays", Message: "so it is",
			LastTransitionTime: at, LastHeartbeatTime: at,
		})
	}
}

// heldBy puts the taint and the record of a rule on the node.
func heldBy(name string, origin noderule.Origin) nodeOption {
	return func(n *corev1.Node) {
		tainted("readiness.k8s.io/"+name, corev1.TaintEffectNoSchedule)(n)
		record := map[string]string{"rule": name, "taint": "readiness.k8s.io/" + name + ":NoSchedule", "origin": string(origin)}
		if origin == noderule.OriginAdded || origin == noderule.OriginAdopted {
			record["since"] = noon.Add(-20 * time.Minute).Format(time.RFC3339)
		}
		value, _ := json.Marshal(record)
		n.Annotations[v1alpha1.HoldPrefix+"uid-"+name] = string(value)
	}
}

func completed(name string) nodeOption {
	return func(n *corev1.Node) {
		n.Annotations[v1alpha1.CompletedPrefix+"uid-"+name] = `{"rule-name":"` + name + `"}`
	}
}

func explanation(n *corev1.Node, all ...*v1alpha1.NodeReadinessRule) view.Explanation {
	return view.NewBook(all).Explanation(n, nil, nil, noon)
}
