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

// CompileTaintNewNodes compiles the rules that make demands on nodes, oldest first. Rules that do
// not fit are left out: their nodes are tainted by the manager, after they were created. A
// bootstrap-only rule waits until it is taken over, a moment after its creation: when that
// was is part of the text, and two texts in a row would take longer to be in force.
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

// concerns is the expression that the rule could put something on the node. A taint that is
// there already is left as it is, record or not: the manager adopts it.
func concerns(rule *noderule.Rule) string {
	return fmt.Sprintf("%s && !taints.exists(t, t.key == %s && t.effect == %s)", selects(rule.Selector(), "labels"), quote(rule.Taint.Key), quote(string(rule.Taint.Effect)))
}

// What the match condition says around the rules: that the request creates the node or changes its
// labels. A kubelet may not change its taints, and would be refused if a policy did it for it. The
// manager changes no labels, and writes the most: it is asked first, for the least.
var (
	concernsStart = "(" + created + " || " + username + " != " + quote(ManagerUser) + " && !('system:nodes' in request.userInfo.?groups.orValue([])) && " +
		"object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})) &&\n" +
		"[object.metadata.?labels.orValue({})].exists(labels, [object.?spec.?taints.orValue([])].exists(taints,\n"
	concernsEnd = "))"
)

// holdExpression is the expression of one rule that is concerned: what to put on the node. On an update
// that is only where the request makes the rule select the node; and never with NoExecute,
// which would evict what runs there before anybody has looked, nor with maxUnavailable, which
// the manager alone can keep. Where time matters it holds, and the manager releases.
func holdExpression(rule *noderule.Rule) string {
	when := []string{created}
	if rule.Taint.Effect != corev1.TaintEffectNoExecute && rule.MaxUnavailable == nil {
		when = []string{fmt.Sprintf("(%s || !%s)", created, selects(rule.Selector(), "variables.before"))}
	}
	if rule.Bootstrap {
		when = append(when, "!"+completed(rule))
	}
	if !rule.Boot && (!rule.Bootstrap || rule.MinReady == 0) { // else that they are met is not enough
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

// TaintNewNodesSpec is the whole policy. It changes nothing where no rule asks for it, and no expression
// in it can fail: what is absent is empty.
func TaintNewNodesSpec(c Compiled) admissionv1.MutatingAdmissionPolicySpec {
	variables := []admissionv1.Variable{
		{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
		{Name: "before", Expression: created + " ? {} : oldObject.metadata.?labels.orValue({})"},
		// When the node was created: null if it is just being.
		{Name: "created", Expression: created + " ? null : oldObject.metadata.?creationTimestamp.orValue(null)"},
		{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
		{Name: "taints", Expression: "object.?spec.?taints.orValue([])"},
		// What a request says of the status is dropped, except as the node is created.
		{Name: "conditions", Expression: "(" + created + " ? object : oldObject).?status.?conditions.orValue([])"},
		{Name: "boot", Expression: "(" + created + " ? object : oldObject).?status.?nodeInfo.?bootID.orValue('')"},
	}
	list := make([]string, 0, len(c.order))
	for _, name := range c.order {
		variables = append(variables, admissionv1.Variable{Name: name, Expression: c.rules[name].Hold})
		list = append(list, fmt.Sprintf("%s ? variables.%s : {}", c.rules[name].Concerns, name))
	}
	variables = append(variables,
		// Only the variables of rules that are concerned are looked at: each one costs.
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

// taintNewNodesPatch appends to the list of taints and to the annotations, and creates them only
// where they are absent and something is to be put there.
const taintNewNodesPatch = `(variables.holds.size() == 0 || has(object.spec.taints) ? [] : [JSONPatch{op: "add", path: "/spec/taints", value: []}]) +
(variables.holds.size() == 0 || has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
variables.holds.map(r, JSONPatch{op: "add", path: "/spec/taints/-", value: Object.spec.taints{key: r.key, value: r.value, effect: r.effect}}) +
variables.holds.map(r, JSONPatch{op: "add", path: r.path, value: r.record})`

// ReadTaintNewNodes is the part of a stored policy that rules decide.
func ReadTaintNewNodes(spec *admissionv1.MutatingAdmissionPolicySpec) Compiled {
	return readCompiled(spec, concernsStart, concernsEnd, TaintNewNodesSpec)
}
