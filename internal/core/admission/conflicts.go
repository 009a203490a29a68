package admission

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Conflicts rejects the creation of a rule that manages the taint of an existing rule on nodes that both can select. The
// existing rules are the params of the policy.
//
// Its result equals that of the manager for a rule that is younger than all others. A rule in dry run has no conflicts.
// Updates and deletions are never rejected, also not the end of a dry run: the manager detects these conflicts, and those
// that an API server has admitted shortly after its start.
func Conflicts() *admissionv1.ValidatingAdmissionPolicy {
	return validating(ConflictsName, admissionv1.Ignore, admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind: rulesAsParams(),
		MatchConstraints: match(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version,
			[]string{"nodereadinessrules"}, admissionv1.Create),
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "enforced", Expression: "!object.spec.?dryRun.orValue(false)"},
			{Name: "another-rule", Expression: "object.metadata.name != params.metadata.name"},
			{Name: "same-taint", Expression: "object.spec.taint.key == params.spec.taint.key && object.spec.taint.effect == params.spec.taint.effect"},
			{Name: "takes-part", Expression: takesPart},
		},
		Variables: []admissionv1.Variable{
			{Name: "expressions", Expression: "object.spec.nodeSelector.?matchExpressions.orValue([]) + params.spec.nodeSelector.?matchExpressions.orValue([])"},
			{Name: "mine", Expression: "object.spec.nodeSelector.?matchLabels.orValue({})"},
			{Name: "theirs", Expression: "params.spec.nodeSelector.?matchLabels.orValue({})"},
			// The values of which a label must have one. Nothing after a label's colon is null, and means empty.
			{Name: "ins", Expression: "variables.mine.map(k, {'key': dyn(k), 'values': dyn([variables.mine[k] == null ? '' : variables.mine[k]])}) + " +
				"variables.theirs.map(k, {'key': dyn(k), 'values': dyn([variables.theirs[k] == null ? '' : variables.theirs[k]])}) + " +
				"variables.expressions.filter(e, e.operator == 'In').map(e, {'key': dyn(e.key), 'values': dyn(e.values)})"},
			{Name: "keys", Expression: "variables.ins.map(i, i.key) + variables.expressions.map(e, e.key)"},
			// Labels do not depend on each other, so no node fits both rules exactly if some
			// label cannot fit both.
			{Name: "apart", Expression: "variables.keys.exists(k, " +
				"(variables.ins.exists(i, i.key == k) || variables.expressions.exists(e, e.key == k && e.operator == 'Exists')) && " +
				"(variables.expressions.exists(e, e.key == k && e.operator == 'DoesNotExist') || " +
				"variables.ins.exists(i, i.key == k && !i.values.exists(v, " +
				"variables.ins.all(j, j.key != k || v in j.values) && " +
				"!variables.expressions.exists(e, e.key == k && e.operator == 'NotIn' && v in e.values)))))"},
		},
		Validations: []admissionv1.Validation{{
			Expression: "variables.apart",
			MessageExpression: "'rule \"' + params.metadata.name + '\" manages the taint ' + params.spec.taint.key + ':' + params.spec.taint.effect + " +
				"' on nodes that this rule can select too: use another taint or a nodeSelector that excludes its nodes, or delete that rule first'",
			Reason: ptr.To(metav1.StatusReasonForbidden),
		}},
	})
}

// ConflictsBinding binds Conflicts.
func ConflictsBinding() *admissionv1.ValidatingAdmissionPolicyBinding {
	b := binding(ConflictsName, admissionv1.Deny)
	b.Spec.ParamRef = everyRule()
	return b
}

// takesPart is the expression that the rule in params is enforced.
const takesPart = "!has(params.metadata.deletionTimestamp) && !params.spec.?dryRun.orValue(false) && " +
	"!params.?status.?conditions.orValue([]).exists(c, c.type == 'Accepted' && c.status == 'False')"

func rulesAsParams() *admissionv1.ParamKind {
	return &admissionv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeReadinessRule"}
}

func everyRule() *admissionv1.ParamRef {
	return &admissionv1.ParamRef{Selector: &metav1.LabelSelector{}, ParameterNotFoundAction: ptr.To(admissionv1.AllowAction)}
}
