package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
)

// Rules limits the manager and the clean-up, on rules of both kinds, to adding and removing the
// finalizers of Readygate. A role can grant "patch" on rules and no less. Requests of other accounts,
// the status, which is a subresource, and deletions are not matched.
func Rules() *admissionv1.ValidatingAdmissionPolicy {
	constraints := match(nodev1alpha1.GroupVersion.Group, nodev1alpha1.GroupVersion.Version, []string{"nodereadinessrules"}, admissionv1.Update)
	constraints.ResourceRules = append(constraints.ResourceRules,
		resourceRule(podv1alpha1.GroupVersion.Group, podv1alpha1.GroupVersion.Version, []string{"podreadinessrules"}, admissionv1.Update))
	const may = "the manager and the clean-up may add and remove their finalizer on rules, and not change "
	return limitBoth(RulesName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: constraints,
		Variables:        []admissionv1.Variable{{Name: "touched", Expression: touchedOfRules()}},
		Validations: []admissionv1.Validation{{
			Expression:        "variables.touched.size() == 0",
			MessageExpression: quote(may) + " + variables.touched.join(', ') + ' (nor may another policy or webhook in their request)'",
			Message:           may + "anything else",
		}},
	})
}

// RulesBinding puts Rules in force.
func RulesBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return binding(RulesName, admissionv1.Deny)
}

// touchedOfRules is the expression for the names of the fields that are changed and must not be.
func touchedOfRules() string {
	others := fmt.Sprintf("metadata.?finalizers.orValue([]).filter(f, !(f in %s))", quoteAll([]string{nodev1alpha1.Finalizer, podv1alpha1.Finalizer}))
	touched := []string{touchedField("spec"), unless("object."+others+" == oldObject."+others, "finalizers of others")}
	for _, field := range fieldsOf(reflect.TypeFor[metav1.ObjectMeta](), slices.Concat(keptByTheServer, []string{"finalizers"})...) {
		touched = append(touched, touchedField("metadata."+field))
	}
	return "[\n  " + strings.Join(touched, ",\n  ") + "\n].filter(f, f != '')"
}
