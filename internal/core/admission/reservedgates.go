package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// ReservedGates lets only the accounts of Readygate set the gates of rules to True and open a latch, on pods
// that rules selected as they were created. Every account may set such a gate to False, close a latch and
// write other conditions. No other account may change labels through pods/status: podgate opens a pod that no
// rule selects any more.
//
// The gates come from the annotation that the API server adds as a pod is created, so gates of other
// controllers, and the well-known gate of pods that no rule selected, are not affected. The annotation
// itself can no longer be changed.
//
// It fails closed: its expressions have no params and nothing to fail on but the cost limit, which only a pod
// with thousands of conditions exceeds, and an account that may patch pods/status could make one.
func ReservedGates() *admissionv1.ValidatingAdmissionPolicy {
	const (
		latch  = "metadata.?annotations[?'" + v1alpha1.LatchAnnotation + "']"
		asked  = "metadata.?annotations[?'" + v1alpha1.GatesAnnotation + "']"
		opened = "%s.?status.?conditions.orValue([]).filter(c, c.status == 'True' && c.type in variables.gates)"
	)
	policy := &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: meta(ReservedGatesName),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Fail),
			MatchConstraints: match("", "v1", []string{"pods", "pods/status"}, admissionv1.Update),
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "by-another-account", Expression: "!(" + username + " in " + quoteAll([]string{PodgateUser, ManagerUser, CleanupUser}) + ")"},
				{Name: "gated-by-a-rule", Expression: "oldObject." + asked + ".hasValue()"},
			},
			Variables: []admissionv1.Variable{
				{Name: "gates", Expression: "oldObject." + asked + ".orValue('').split(' ').filter(g, g.contains('/'))"},
				{Name: "open", Expression: fmt.Sprintf(opened, "object")},
				{Name: "openBefore", Expression: fmt.Sprintf(opened, "oldObject")},
			},
			Validations: []admissionv1.Validation{
				{
					Expression: "variables.open.size() <= variables.gates.size() && variables.open.all(c, c in variables.openBefore)",
					MessageExpression: "'only Readygate may set the reserved gates ' + variables.gates.join(', ') + ' of this pod to True: set a condition of your own type, " +
						"e.g. policy.example.com/programmed, and list it as a podCondition component in the PodReadinessRule'",
					Message: "only Readygate may set the reserved gates of this pod to True: set a condition of your own type, and list it as a podCondition component in the PodReadinessRule",
				},
				{
					Expression: "object." + latch + " == oldObject." + latch + " || !object." + latch + ".hasValue() || object." + latch + ".orValue('').startsWith('closed ')",
					Message: "only Readygate may open the latch of this pod (annotation " + v1alpha1.LatchAnnotation + "): to start it without its network, label it " +
						v1alpha1.OptOutLabel + "=" + v1alpha1.OptOut,
				},
				{
					Expression: "object." + asked + " == oldObject." + asked,
					Message:    "the annotation " + v1alpha1.GatesAnnotation + " lists the reserved gates of this pod and must not be changed or removed: leave it as it is",
				},
				{
					Expression: "request.?subResource.orValue('') != 'status' || object.metadata.?labels == oldObject.metadata.?labels",
					Message:    "labels of a pod with reserved gates must not be changed through pods/status, because rules select pods by labels: patch the pod itself",
				},
			},
		},
	}
	for i := range policy.Spec.Validations {
		policy.Spec.Validations[i].Reason = ptr.To(metav1.StatusReasonForbidden)
	}
	return policy
}

// ReservedGatesBinding puts ReservedGates in force.
func ReservedGatesBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(ReservedGatesName, admissionv1.Deny)
}
