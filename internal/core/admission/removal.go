package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Removal warns a user who deletes the manager or the CRD while rules are enforced: the API server would still taint new
// nodes, and no component would release them. It rejects nothing. Rules without our finalizer do not count: they are not
// enforced yet, or the cleanup has removed their finalizer.
func Removal() *admissionv1.ValidatingAdmissionPolicy {
	constraints := match("apps", "v1", []string{"deployments"}, admissionv1.Delete)
	constraints.ResourceRules = append(constraints.ResourceRules,
		resourceRule("", "v1", []string{"namespaces"}, admissionv1.Delete),
		resourceRule("apiextensions.k8s.io", "v1", []string{"customresourcedefinitions"}, admissionv1.Delete))
	for i, name := range []string{ManagerAccount, ManagerNamespace, v1alpha1.CRDName} {
		constraints.ResourceRules[i].ResourceNames = []string{name}
	}
	return validating(RemovalName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind:        rulesAsParams(),
		MatchConstraints: constraints,
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "ours", Expression: fmt.Sprintf("request.resource.resource != 'deployments' || request.namespace == %s", quote(ManagerNamespace))},
			{Name: "enforced", Expression: quote(v1alpha1.Finalizer) + " in params.metadata.?finalizers.orValue([])"},
		},
		Validations: []admissionv1.Validation{{
			Expression: "false",
			Message: "rules exist: without readygate-manager, held nodes stay held and new nodes are still created with the taint. " +
				"First run: kubectl delete nrr --all. If the manager is already deleted: kubectl delete mutatingadmissionpolicybinding " + TaintNewNodesName,
		}},
	})
}

// RemovalBinding binds Removal.
func RemovalBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	b := binding(RemovalName, admissionv1.Warn)
	b.Spec.ParamRef = everyRule()
	return b
}

// Advice warns a user who creates or changes a rule such that one failing probe could evict pods from all nodes. It rejects
// nothing: rules of other controllers of this API, which have no maxUnavailable, must continue to work.
func Advice() *admissionv1.ValidatingAdmissionPolicy {
	return validating(AdviceName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
			[]string{"nodereadinessrules"}, admissionv1.Create, admissionv1.Update),
		Validations: []admissionv1.Validation{{
			Expression: "object.spec.enforcementMode != 'continuous' || object.spec.taint.effect != 'NoExecute' || has(object.spec.maxUnavailable) || " +
				"has(object.metadata.deletionTimestamp)",
			Message: "spec.maxUnavailable is missing and the taint effect is NoExecute: a reporter that fails on all nodes would evict the pods of all nodes at once. " +
				"Set maxUnavailable, e.g. 1 or 10%, or use the effect NoSchedule, which does not evict pods",
		}},
	})
}

// AdviceBinding binds Advice.
func AdviceBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(AdviceName, admissionv1.Warn)
}
