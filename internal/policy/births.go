package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/internal/readiness"
)

// Bounds of the text. CEL takes 100,000 characters an expression, etcd 1.5 MiB an object; but
// a node creation pays for all of it, and an API server compiles all of it at every change.
const (
	maxRuleText = 32 << 10
	maxText     = 128 << 10
)

// Births is the part of the births policy that rules decide: for each rule, by the name of its
// variable, its texts.
type Births struct {
	rules map[string]Text
	order []string
	// leftOut are the variables of rules that do not fit.
	leftOut map[string]bool
	// edited are the variables of rules in a text that cannot be relied on.
	edited map[string]bool
}

// Text is what the policy says of one rule, as CEL.
type Text struct {
	// Concerns is whether the rule selects the node and its taint is not there: if no rule
	// does, the API server does not even begin to make a patch.
	Concerns string
	// Hold is the taint and record to put on, or an empty map.
	Hold string
}

func (t Text) size() int { return len(t.Concerns) + len(t.Hold) }

// CompileBirths compiles the rules that make demands on nodes, oldest first. Rules that do
// not fit are left out: their nodes are tainted by the manager, after they were created. A
// bootstrap-only rule waits until it is taken over, a moment after its creation: when that
// was is part of the text, and two texts in a row would take longer to be in force.
func CompileBirths(rules []*readiness.Rule) Births {
	births := Births{rules: map[string]Text{}, leftOut: map[string]bool{}}
	size := 0
	for _, rule := range rules {
		if !rule.Active() || rule.Bootstrap && rule.TakenOver.IsZero() {
			continue
		}
		text := Text{Concerns: concerns(rule), Hold: birth(rule)}
		if text.size() > maxRuleText || size+text.size() > maxText {
			births.leftOut[VariableOf(rule.UID)] = true
			continue
		}
		size += text.size()
		births.add(VariableOf(rule.UID), text)
	}
	return births
}

func (b *Births) add(name string, text Text) {
	b.rules[name] = text
	b.order = append(b.order, name)
}

// Texts are what the policy says of each rule, by the name of the rule's variable. Nobody may
// change them.
func (b Births) Texts() map[string]Text { return b.rules }

// Covers says whether the policy speaks of the rule of this UID.
func (b Births) Covers(uid types.UID) bool {
	_, ok := b.rules[VariableOf(uid)]
	return ok
}

// Variables are the names of all variables of rules in the policy, be it in a text that cannot
// be relied on.
func (b Births) Variables() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(b.rules)), maps.Keys(b.edited))
}

// Names says whether a variable of this name is in the policy, be it in a text that cannot be
// relied on.
func (b Births) Names(variable string) bool {
	_, ok := b.rules[variable]
	return ok || b.edited[variable]
}

// LeavesOut says whether the rule of this UID was left out because it does not fit.
func (b Births) LeavesOut(uid types.UID) bool { return b.leftOut[VariableOf(uid)] }

// Keeps says whether the policy says of the rule of this UID what the other one says.
func (b Births) Keeps(uid types.UID, other Births) bool {
	text, ok := other.rules[VariableOf(uid)]
	return ok && b.rules[VariableOf(uid)] == text
}

// Drops says whether the other policy speaks of a rule that this one does not.
func (b Births) Drops(other Births) bool {
	for name := range other.rules {
		if _, ok := b.rules[name]; !ok {
			return true
		}
	}
	return false
}

const variablePrefix = "rule_"

// VariableOf is the name of the variable of the rule of this UID.
func VariableOf(uid types.UID) string {
	return variablePrefix + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, string(uid))
}

// concerns is the expression that the rule could put something on the node. A taint that is
// there already is left as it is, record or not: the manager adopts it.
func concerns(rule *readiness.Rule) string {
	return fmt.Sprintf("%s && !taints.exists(t, t.key == %s && t.effect == %s)", selects(rule, "labels"), quote(rule.Taint.Key), quote(string(rule.Taint.Effect)))
}

// or joins the expressions of all rules. None of them has a line break: texts are quoted.
const or = " ||\n"

// concernsAny is the match condition that some rule could put something on the node, in a
// request that creates it or changes its labels. It is one expression, which stops at the
// first answer, and has no variables, because match conditions know none. A kubelet may not
// change its taints, and would be refused if a policy did it for it. The manager changes no
// labels, and writes the most: it is asked first, for the least.
func (b Births) concernsAny() string {
	if len(b.order) == 0 {
		return "false"
	}
	terms := make([]string, len(b.order))
	for i, name := range b.order {
		terms[i] = b.rules[name].Concerns
	}
	return concernsStart + strings.Join(terms, or) + concernsEnd
}

var (
	concernsStart = "(" + created + " || " + username + " != " + quote(ManagerUser) + " && !('system:nodes' in request.userInfo.?groups.orValue([])) && " +
		"object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})) &&\n" +
		"[object.metadata.?labels.orValue({})].exists(labels, [object.?spec.?taints.orValue([])].exists(taints,\n"
	concernsEnd = "))"
)

// concernsOf are the expressions that concernsAny was made of.
func concernsOf(expression string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(expression, concernsStart), concernsEnd), or)
}

// birth is the expression of one rule that is concerned: what to put on the node. On an update
// that is only where the request makes the rule select the node; and never with NoExecute,
// which would evict what runs there before anybody has looked, nor with maxUnavailable, which
// the manager alone can keep. Where time matters it holds, and the manager releases.
func birth(rule *readiness.Rule) string {
	when := []string{created}
	if rule.Taint.Effect != corev1.TaintEffectNoExecute && rule.MaxUnavailable == nil {
		when = []string{fmt.Sprintf("(%s || !%s)", created, selects(rule, "variables.before"))}
	}
	if rule.Bootstrap {
		when = append(when, "!"+completed(rule))
	}
	if !rule.Boot && (!rule.Bootstrap || rule.MinReady == 0) { // else that they are met is not enough
		when = append(when, "!"+met(rule))
	}

	path, born := readiness.AdmissionRecord(rule, readiness.OriginBorn)
	_, labelled := readiness.AdmissionRecord(rule, readiness.OriginLabelled)
	return fmt.Sprintf("%s ? {\"key\": %s, \"value\": %s, \"effect\": %s, \"path\": %s, \"record\": %s ? %s : %s} : {}",
		strings.Join(when, " && "), quote(rule.Taint.Key), quote(rule.Taint.Value), quote(string(rule.Taint.Effect)),
		quote("/metadata/annotations/"+pointer.Replace(path)), created, quote(born), quote(labelled))
}

// created is the expression that the request creates the node.
const created = "oldObject == null"

// pointer escapes a key for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Spec is the whole policy. It changes nothing where no rule asks for it, and no expression
// in it can fail: what is absent is empty.
func (b Births) Spec() admissionv1.MutatingAdmissionPolicySpec {
	variables := []admissionv1.Variable{
		{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
		{Name: "before", Expression: created + " ? {} : oldObject.metadata.?labels.orValue({})"},
		// When the node was created: null if it is just being.
		{Name: "born", Expression: created + " ? null : oldObject.metadata.?creationTimestamp.orValue(null)"},
		{Name: "annotations", Expression: "object.metadata.?annotations.orValue({})"},
		{Name: "taints", Expression: "object.?spec.?taints.orValue([])"},
		// What a request says of the status is dropped, except as the node is created.
		{Name: "conditions", Expression: "(" + created + " ? object : oldObject).?status.?conditions.orValue([])"},
		{Name: "boot", Expression: "(" + created + " ? object : oldObject).?status.?nodeInfo.?bootID.orValue('')"},
	}
	list := make([]string, 0, len(b.order))
	for _, name := range b.order {
		variables = append(variables, admissionv1.Variable{Name: name, Expression: b.rules[name].Hold})
		list = append(list, fmt.Sprintf("%s ? variables.%s : {}", b.rules[name].Concerns, name))
	}
	variables = append(variables,
		// Only the variables of rules that are concerned are looked at: each one costs.
		admissionv1.Variable{Name: "rules", Expression: "[variables.labels].map(labels, [variables.taints].map(taints, [\n" + strings.Join(list, ",\n") + "]))[0][0]"},
		admissionv1.Variable{Name: "holds", Expression: "variables.rules.filter(r, r.size() > 0)"},
	)
	return admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: nodesOnly(admissionv1.Create, admissionv1.Update),
		MatchConditions:  []admissionv1.MatchCondition{{Name: "a-rule-is-concerned", Expression: b.concernsAny()}},
		Variables:        variables,
		Mutations: []admissionv1.Mutation{{
			PatchType: admissionv1.PatchTypeJSONPatch,
			JSONPatch: &admissionv1.JSONPatch{Expression: birthsPatch},
		}},
		FailurePolicy:      ptr.To(admissionv1.Ignore),
		ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
	}
}

// birthsPatch appends to the list of taints and to the annotations, and creates them only
// where they are absent and something is to be put there.
const birthsPatch = `(variables.holds.size() == 0 || has(object.spec.taints) ? [] : [JSONPatch{op: "add", path: "/spec/taints", value: []}]) +
(variables.holds.size() == 0 || has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
variables.holds.map(r, JSONPatch{op: "add", path: "/spec/taints/-", value: Object.spec.taints{key: r.key, value: r.value, effect: r.effect}}) +
variables.holds.map(r, JSONPatch{op: "add", path: r.path, value: r.record})`

// ReadBirths is the part of a stored policy that rules decide. A policy that is not, but for
// that, just what Spec makes says nothing that can be relied on: it covers no rule.
func ReadBirths(spec *admissionv1.MutatingAdmissionPolicySpec) Births {
	births := Births{rules: map[string]Text{}}
	var concerns []string
	if len(spec.MatchConditions) > 0 {
		concerns = concernsOf(spec.MatchConditions[0].Expression)
	}
	for _, variable := range spec.Variables {
		if !strings.HasPrefix(variable.Name, variablePrefix) {
			continue
		}
		text := Text{Hold: variable.Expression}
		if i := len(births.order); i < len(concerns) {
			text.Concerns = concerns[i]
		}
		births.add(variable.Name, text)
	}
	if equality.Semantic.DeepEqual(births.Spec(), *spec) {
		return births
	}
	edited := Births{edited: map[string]bool{}}
	for name := range births.rules {
		edited.edited[name] = true
	}
	return edited
}

// Equal says whether two policies say the same, and leave out the same.
func (b Births) Equal(other Births) bool {
	return slices.Equal(b.order, other.order) && maps.Equal(b.rules, other.rules) && maps.Equal(b.leftOut, other.leftOut) && maps.Equal(b.edited, other.edited)
}
