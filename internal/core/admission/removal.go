package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

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
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta("ValidatingAdmissionPolicy"),
		ObjectMeta: meta(RemovalName),
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    ptr.To(admissionv1.Ignore),
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
		},
	}
}

// RemovalBinding puts Removal in force.
func RemovalBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	b := binding(RemovalName, admissionv1.Warn)
	b.Spec.ParamRef = everyRule()
	return b
}
