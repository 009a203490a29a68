package admission

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/internal/core/noderule"
)

// CompileTaintNewNodes compiles the active rules, oldest first. Rules that do not fit are left out: the manager taints
// their nodes after the nodes were created. A bootstrap-only rule is included once its status has takenOverAt, a moment
// after its creation: the text contains this time, and two changes in a row would take effect later than one.
func CompileTaintNewNodes(rules []*noderule.Rule) Compiled {
	return build(func(yield func(types.UID, Text) bool) {
		for _, rule := range rules {
			if !rule.Active() || rule.Bootstrap && rule.TakenOver.IsZero() {
				continue
			}
			if !yield(rule.UID, Text{Concerns: concerns(rule), Hold: holdExpression(rule)}) {
				return
			}
		}
	})
}

// concerns is the expression that the rule may add its taint to the node. An existing taint is not changed, with or without
// a record: the manager adopts it.
func concerns(rule *noderule.Rule) string {
	return fmt.Sprintf("%s && !taints.exists(t, t.key == %s && t.effect == %s)", selects(rule.Selector(), "labels"), quote(rule.Taint.Key), quote(string(rule.Taint.Effect)))
}

// The parts of the match condition around the rules: the request creates the node or changes its labels. A kubelet may not
// change taints of its node, and the API server would reject its request if a policy changed them in it. The manager changes
// no labels and sends the most requests, so its name is compared first.
var (
	concernsStart = "(" + created + " || " + username + " != " + quote(ManagerUser) + " && !('system:nodes' in request.userInfo.?groups.orValue([])) && " +
		"object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})) &&\n" +
		"[object.metadata.?labels.orValue({})].exists(labels, [object.?spec.?taints.orValue([])].exists(taints,\n"
	concernsEnd = "))"
)

// holdExpression is the expression for what a concerned rule adds to the node. An update adds a taint only if it makes the
// rule select the node. It never adds a taint with NoExecute, which would evict running pods before the manager has
// evaluated the node, or of a rule with maxUnavailable, which only the manager can enforce. A requirement that depends on
// time counts as unmet, and the manager releases the node.
func holdExpression(rule *noderule.Rule) string {
	when := []string{created}
	if rule.Taint.Effect != corev1.TaintEffectNoExecute && rule.MaxUnavailable == nil {
		when = []string{fmt.Sprintf("(%s || !%s)", created, selects(rule.Selector(), "variables.before"))}
	}
	if rule.Bootstrap {
		when = append(when, "!"+completed(rule))
	}
	if !rule.Boot && (!rule.Bootstrap || rule.MinReady == 0) { // otherwise met requirements are not sufficient
		when = append(when, "!"+met(rule))
	}

	path, atCreation := noderule.AdmissionRecord(rule, noderule.OriginCreated)
	_, labelled := noderule.AdmissionRecord(rule, noderule.OriginLabelled)
	return fmt.Sprintf("%s ? {\"key\": %s, \"value\": %s, \"effect\": %s, \"path\": %s, \"record\": %s ? %s : %s} : {}",
		strings.Join(when, " && "), quote(rule.Taint.Key), quote(rule.Taint.Value), quote(string(rule.Taint.Effect)),
		quote("/metadata/annotations/"+pointer.Replace(path)), created, quote(atCreation), quote(labelled))
}

// created is the expression that the request creates the node.
const created = "oldObject == null"

// pointer escapes a key for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// TaintNewNodesSpec is the whole policy. It changes only nodes that a rule holds. No expression in it can fail: an absent
// field is empty.
func TaintNewNodesSpec(c Compiled) admissionv1.MutatingAdmissionPolicySpec {
	variables := []admissionv1.Variable{
		{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
		{Name: "before", Expression: created + " ? {} : oldObject.metadata.?labels.orValue({})"},
		// The creation time of the node; null in the request that creates it.
		{Name: "created", Expression: created + " ? null : oldObject.metadata.?creationTimestamp.orValue(null)"},
		{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
		{Name: "taints", Expression: "object.?spec.?taints.orValue([])"},
		// The API server ignores the status in a request, except when the node is created.
		{Name: "conditions", Expression: "(" + created + " ? object : oldObject).?status.?conditions.orValue([])"},
		{Name: "boot", Expression: "(" + created + " ? object : oldObject).?status.?nodeInfo.?bootID.orValue('')"},
	}
	list := make([]string, 0, len(c.order))
	for _, name := range c.order {
		variables = append(variables, admissionv1.Variable{Name: name, Expression: c.rules[name].Hold})
		list = append(list, fmt.Sprintf("%s ? variables.%s : {}", c.rules[name].Concerns, name))
	}
	variables = append(variables,
		// Only the variables of concerned rules are evaluated: each has a cost.
		admissionv1.Variable{Name: "rules", Expression: "[variables.labels].map(labels, [variables.taints].map(taints, [\n" + strings.Join(list, ",\n") + "]))[0][0]"},
		admissionv1.Variable{Name: "holds", Expression: "variables.rules.filter(r, r.size() > 0)"},
	)
	return admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: nodesOnly(admissionv1.Create, admissionv1.Update),
		MatchConditions:  []admissionv1.MatchCondition{{Name: "a-rule-is-concerned", Expression: c.concernsAny(concernsStart, concernsEnd)}},
		Variables:        variables,
		Mutations: []admissionv1.Mutation{{
			PatchType: admissionv1.PatchTypeJSONPatch,
			JSONPatch: &admissionv1.JSONPatch{Expression: taintNewNodesPatch},
		}},
		FailurePolicy:      ptr.To(admissionv1.Ignore),
		ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
	}
}

// taintNewNodesPatch appends to the list of taints and to the annotations. It creates them only if they are absent and a
// rule adds something.
const taintNewNodesPatch = `(variables.holds.size() == 0 || has(object.spec.taints) ? [] : [JSONPatch{op: "add", path: "/spec/taints", value: []}]) +
(variables.holds.size() == 0 || has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
variables.holds.map(r, JSONPatch{op: "add", path: "/spec/taints/-", value: Object.spec.taints{key: r.key, value: r.value, effect: r.effect}}) +
variables.holds.map(r, JSONPatch{op: "add", path: r.path, value: r.record})`

// ReadTaintNewNodes returns the part of a stored policy that depends on rules.
func ReadTaintNewNodes(spec *admissionv1.MutatingAdmissionPolicySpec) Compiled {
	return readCompiled(spec, concernsStart, concernsEnd, TaintNewNodesSpec)
}
