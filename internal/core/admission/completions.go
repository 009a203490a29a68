package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Completions refuses kubelets, and service accounts other than the manager's, that mark a
// node as completed, or as one in use: as it registers, or later, also through its status. What a request
// leaves as it is, or removes, is none of its business.
//
// It sees everybody's requests for nodes, so it fails open, and does nothing until it is bound.
func Completions() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: meta(CompletionsName),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			MatchConstraints: match("", "v1", []string{"nodes", "nodes/status"}, admissionv1.Create, admissionv1.Update),
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "by-a-kubelet-or-agent", Expression: "request.userInfo.?groups.orValue([]).exists(g, g in ['system:nodes', 'system:serviceaccounts'])"},
				{Name: "not-by-the-manager", Expression: username + " != " + quote(ManagerUser)},
			},
			Variables: []admissionv1.Variable{
				{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
				{Name: "before", Expression: "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})"},
				{Name: "forged", Expression: "variables.annotations.filter(k, (" + prefixed("k", v1alpha1.CompletedPrefix, v1alpha1.MemoryPrefix) +
					") && !(k in variables.before && variables.before[k] == variables.annotations[k]))"},
			},
			Validations: []admissionv1.Validation{{
				Expression: "variables.forged.size() == 0",
				MessageExpression: "'only people and the manager of Readygate (" + ManagerUser + ") may mark a node as completed or in use: remove the annotation ' + variables.forged.join(', ')" +
					" + ' from the request'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}
}

// CompletionsBinding puts Completions in force.
func CompletionsBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(CompletionsName, admissionv1.Deny)
}
