package dashboard_test

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// made returns a rule that holds the nodes labelled with its name until the condition of this type is True. Its status
// is that of an enforced rule.
func made(name, condition string, created time.Time, change ...func(*v1alpha1.NodeReadinessRule)) *v1alpha1.NodeReadinessRule {
	rule := &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: condition, RequiredStatus: corev1.ConditionTrue}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/" + name, Value: "pending", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{name: "yes"}},
		},
		Status: v1alpha1.NodeReadinessRuleStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAccepted},
			{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced},
			{Type: v1alpha1.ConditionTaintedAtCreation, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPolicyActive},
		}},
	}
	for _, f := range change {
		f(rule)
	}
	return rule
}

// machine is a node that joined at a time. Its methods set what rules evaluate.
type machine struct{ *corev1.Node }

func joined(name string, created time.Time) machine {
	return machine{&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(created), Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}}
}

// held makes a rule hold the node since it was created; the condition is absent.
func (m machine) held(rule string) machine {
	m.Labels[rule] = "yes"
	key := "readiness.k8s.io/" + rule
	m.Spec.Taints = append(m.Spec.Taints, corev1.Taint{Key: key, Value: "pending", Effect: corev1.TaintEffectNoSchedule})
	record, _ := json.Marshal(map[string]string{"rule": rule, "taint": key + ":NoSchedule", "origin": "added", "since": m.CreationTimestamp.Format(time.RFC3339)})
	m.Annotations[v1alpha1.HoldPrefix+"uid-"+rule] = string(record)
	return m
}

// says adds a condition to the node.
func (m machine) says(condition string, status corev1.ConditionStatus, reason, message string, at time.Time) machine {
	m.Status.Conditions = append(m.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeConditionType(condition), Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(at), LastHeartbeatTime: metav1.NewTime(at),
	})
	return m
}

// released is a node whose condition for the rule became True some time after it joined.
func (m machine) released(rule, condition string, after time.Duration) machine {
	m.Labels[rule] = "yes"
	return m.says(condition, corev1.ConditionTrue, "Healthy", "", m.CreationTimestamp.Add(after))
}

func objects(machines []machine) []client.Object {
	all := make([]client.Object, len(machines))
	for i, m := range machines {
		all[i] = m.Node
	}
	return all
}
