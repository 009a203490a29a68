package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Holds rejects updates of nodes, and of their status, that add or change an ownership record: with a forged record, a
// kubelet could make the manager remove a taint that the kubelet may not remove itself. The manager is exempt. So is a
// request that also adds the taint that the record names: readygate-taint-new-nodes adds both when a label makes a rule
// select the node, and this policy evaluates the result. A kubelet is never exempt, because readygate-taint-new-nodes does
// not change its updates. Removing a record is allowed. Creation is not matched: readygate-taint-new-nodes writes records
// there.
//
// It applies to requests of all accounts for nodes, so it fails open.
func Holds() *admissionv1.ValidatingAdmissionPolicy {
	return validating(HoldsName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "v1", []string{"nodes", "nodes/status"}, admissionv1.Update),
		// One expression, so that the manager, which writes the most, pays for its name only.
		MatchConditions: []admissionv1.MatchCondition{{Name: "others-change-annotations", Expression: username + " != " + quote(ManagerUser) +
			" && object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({})"}},
		Variables: []admissionv1.Variable{
			{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
			{Name: "before", Expression: "oldObject.metadata.?annotations.orValue({})"},
			{Name: "kubelet", Expression: "'system:nodes' in request.userInfo.?groups.orValue([])"},
			// The taints that the request adds, as records name them.
			{Name: "added", Expression: "variables.kubelet || request.?subResource.orValue('') != '' ? [] : " +
				"object.?spec.?taints.orValue([]).filter(t, !oldObject.?spec.?taints.orValue([]).exists(o, o.key == t.key && o.effect == t.effect))" +
				`.map(t, '"taint":"' + t.key + ':' + t.effect + '"')`},
			{Name: "forged", Expression: "variables.annotations.filter(k, k.startsWith(" + quote(v1alpha1.HoldPrefix) + ")" +
				" && !(k in variables.before && variables.before[k] == variables.annotations[k])" +
				" && !variables.added.exists(t, variables.annotations[k].contains(t)))"},
		},
		Validations: []admissionv1.Validation{{
			Expression: "variables.forged.size() == 0",
			MessageExpression: "'only the manager of Readygate (" + ManagerUser + ") may add or change an ownership record on a node: leave the annotation ' + variables.forged.join(', ')" +
				" + ' as it is, or remove it'",
			Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	})
}

// HoldsBinding binds Holds.
func HoldsBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(HoldsName, admissionv1.Deny)
}

// Completions rejects requests of kubelets, and of service accounts other than the manager's, that mark a node as completed
// or as in use: when it registers, or later, also through its status. Annotations that a request keeps or removes are
// allowed.
//
// It applies to requests for all nodes, so it fails open. It has no effect until it is bound.
func Completions() *admissionv1.ValidatingAdmissionPolicy {
	return validating(CompletionsName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
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
			MessageExpression: "'of kubelets and service accounts, only the manager of Readygate (" + ManagerUser + ") may mark a node as completed or in use: remove the annotation ' + variables.forged.join(', ')" +
				" + ' from the request'",
			Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	})
}

// CompletionsBinding binds Completions.
func CompletionsBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(CompletionsName, admissionv1.Deny)
}
