package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// Tolerations adds a toleration of a rule's taint to the DaemonSets that the rule names, when they are created or changed.
// It changes the DaemonSet and not its pods: the DaemonSet controller creates no pod for a node whose taints the DaemonSet
// does not tolerate.
//
// The rules are the params of the policy, and its text never changes. An account that may write a policy for DaemonSets can
// run anything on every node, and the manager must not be able to. If an API server admits a DaemonSet without the
// toleration shortly after its start, the rule's status reports it, and the next change of the DaemonSet adds it.
func Tolerations() *admissionv1.MutatingAdmissionPolicy {
	return mutating(TolerationsName, admissionv1.MutatingAdmissionPolicySpec{
		FailurePolicy:      ptr.To(admissionv1.Ignore),
		ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
		ParamKind:          rulesAsParams(),
		MatchConstraints:   daemonSetsOnly(),
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "enforced", Expression: takesPart},
			{Name: "asks-for-it", Expression: "has(params.spec.tolerations)"},
			{Name: "selects", Expression: selectedByParams("params.spec.tolerations.?daemonSetSelector", "object.metadata.?labels.orValue({})")},
			{Name: "does-not-tolerate", Expression: "!object.spec.template.?spec.?tolerations.orValue([]).exists(t, " +
				"(t.?key.orValue('') == '' || t.key == params.spec.taint.key) && (t.?effect.orValue('') == '' || t.effect == params.spec.taint.effect) && " +
				"(t.?operator.orValue('') == 'Exists' || t.?operator.orValue('') in ['', 'Equal'] && t.?key.orValue('') != '' && t.?value.orValue('') == params.spec.taint.?value.orValue('')) && " +
				"!has(t.tolerationSeconds))"},
		},
		Mutations: []admissionv1.Mutation{{
			PatchType: admissionv1.PatchTypeJSONPatch,
			// Match conditions have no access to the namespace.
			JSONPatch: &admissionv1.JSONPatch{Expression: "!" + selectedByParams("params.spec.tolerations.?namespaceSelector", "namespaceObject.?metadata.?labels.orValue({})") +
				" ? [] :\n" + tolerationsPatch},
		}},
	})
}

// TolerationsBinding binds Tolerations for DaemonSets only.
func TolerationsBinding() *admissionv1.MutatingAdmissionPolicyBinding {
	return mutatingBinding(TolerationsName, everyRule(), daemonSetsOnly())
}

func daemonSetsOnly() *admissionv1.MatchResources {
	return match("apps", "v1", []string{"daemonsets"}, admissionv1.Create, admissionv1.Update)
}

const tolerationsPatch = `((has(object.spec.template.spec.tolerations) ? [] : [JSONPatch{op: "add", path: "/spec/template/spec/tolerations", value: []}]) +
[JSONPatch{op: "add", path: "/spec/template/spec/tolerations/-", value: Object.spec.template.spec.tolerations{key: params.spec.taint.key, operator: "Exists", effect: params.spec.taint.effect}}])`

// selectedByParams is the expression that a map of labels matches an optional selector of a rule; without a selector,
// everything matches. Nothing after a label's colon is null, and means empty.
func selectedByParams(selector, labels string) string {
	return fmt.Sprintf("[%[2]s].all(labels, "+
		"[%[1]s.?matchLabels.orValue({})].all(exact, exact.all(k, k in labels && labels[k] == (exact[k] == null ? '' : exact[k]))) && "+
		"%[1]s.?matchExpressions.orValue([]).all(e, "+
		"e.operator == 'Exists' ? e.key in labels : "+
		"e.operator == 'DoesNotExist' ? !(e.key in labels) : "+
		"(e.key in labels && labels[e.key] in e.?values.orValue([])) == (e.operator == 'In')))", selector, labels)
}
