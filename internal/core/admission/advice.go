package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Advice warns, and refuses nothing, when somebody creates or changes a rule so that one probe
// gone wrong empties all nodes. Others wrote such rules before the limit was there, and theirs
// must go on to work.
func Advice() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: meta(AdviceName),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Ignore),
			MatchConstraints: match(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
				[]string{"nodereadinessrules"}, admissionv1.Create, admissionv1.Update),
			Validations: []admissionv1.Validation{{
				Expression: "object.spec.enforcementMode != 'continuous' || object.spec.taint.effect != 'NoExecute' || has(object.spec.maxUnavailable) || " +
					"has(object.metadata.deletionTimestamp)",
				Message: "spec.maxUnavailable is missing, and NoExecute evicts: a reporter that goes wrong everywhere would empty all nodes at once. " +
					"Set maxUnavailable, e.g. 1 or 10%, or use the effect NoSchedule, which keeps running pods",
			}},
		},
	}
}

// AdviceBinding puts Advice in force.
func AdviceBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(AdviceName, admissionv1.Warn)
}
