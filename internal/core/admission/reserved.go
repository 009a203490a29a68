package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reserved refuses everybody but the reporter, administrators included, to add, change or
// remove a condition of its types: as a node is created, or later. Who uninstalls may remove
// it: its reporter is gone by then. What a request leaves as it
// is, is none of its business. A compromised kubelet can still report what it likes to the
// reporter on its node; this is against accidents, and against agents of other nodes.
//
// It sees everybody's requests for nodes, so it fails open, and does nothing until it is bound.
func (r Reporter) Reserved() *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: meta(nameFor("reserved", r.Namespace, r.Account)),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
			MatchConstraints: match("", "v1", []string{"nodes", "nodes/status"}, admissionv1.Create, admissionv1.Update),
			Variables: []admissionv1.Variable{
				{Name: "reporter", Expression: quote(userOf(r.Namespace, r.Account))},
				{Name: "types", Expression: quoteAll(r.Types)},
				{Name: "conditions", Expression: "object.?status.?conditions.orValue([])"},
				{Name: "before", Expression: "oldObject == null ? [] : oldObject.?status.?conditions.orValue([])"},
				{Name: "touched", Expression: "variables.types.filter(t, variables.conditions.filter(c, c.type == t) != variables.before.filter(c, c.type == t))"},
			},
			Validations: []admissionv1.Validation{{
				Expression: "variables.touched.size() == 0 || " + username + " == variables.reporter || " +
					username + " == " + quote(CleanupUser) + " && !variables.conditions.exists(c, c.type in variables.touched)",
				MessageExpression: "'only ' + variables.reporter + ' may add, change or remove the condition ' + variables.touched.join(', ')" +
					" + ' of a node: leave it as it is, or delete the binding of this policy first'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}},
		},
	}
}

// ReservedBinding puts Reserved in force.
func (r Reporter) ReservedBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(r.Reserved().Name, admissionv1.Deny)
}
