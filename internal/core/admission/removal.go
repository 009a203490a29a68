package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Removal warns, and refuses nothing, when somebody deletes the manager or the CRD while
// there are rules that are enforced: the API server goes on tainting new nodes, and nobody
// releases them. The answer says what to do. Rules without our finalizer are not enforced yet,
// or no more: the cleanup has let them go.
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
			Message: "rules exist: without readygate-manager nobody releases the nodes that they hold, and new ones are created with the taint. " +
				"First: kubectl delete nrr --all. If the manager is gone: kubectl delete mutatingadmissionpolicybinding " + TaintNewNodesName,
		}},
	})
}

// RemovalBinding puts Removal in force.
func RemovalBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	b := binding(RemovalName, admissionv1.Warn)
	b.Spec.ParamRef = everyRule()
	return b
}

// Advice warns, and refuses nothing, when somebody creates or changes a rule so that one probe
// gone wrong empties all nodes. Others wrote such rules before the limit was there, and theirs
// must go on to work.
func Advice() *admissionv1.ValidatingAdmissionPolicy {
	return validating(AdviceName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
			[]string{"nodereadinessrules"}, admissionv1.Create, admissionv1.Update),
		Validations: []admissionv1.Validation{{
			Expression: "object.spec.enforcementMode != 'continuous' || object.spec.taint.effect != 'NoExecute' || has(object.spec.maxUnavailable) || " +
				"has(object.metadata.deletionTimestamp)",
			Message: "spec.maxUnavailable is missing, and NoExecute evicts: a reporter that goes wrong everywhere would empty all nodes at once. " +
				"Set maxUnavailable, e.g. 1 or 10%, or use the effect NoSchedule, which keeps running pods",
		}},
	})
}

// AdviceBinding puts Advice in force.
func AdviceBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(AdviceName, admissionv1.Warn)
}
