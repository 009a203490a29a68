package admission

import (
	"iter"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of the text. CEL accepts 100,000 characters per expression, etcd 1.5 MiB per object. Each creation evaluates the
// text, and each API server compiles all of it at every change.
const (
	maxRuleText = 32 << 10
	maxText     = 128 << 10
	// maxListed is the maximum length of the list of all rules in each of two expressions. The rest of the limit of CEL is
	// for the text around the list.
	maxListed = 96_000
)

// Compiled is the part of a policy that depends on rules: the texts of each rule, by the name of its variable.
type Compiled struct {
	rules map[string]Text
	order []string
	// leftOut are the variables of rules that do not fit.
	leftOut map[string]bool
	// edited are the variables of rules in a text that cannot be relied on.
	edited map[string]bool
}

// Text is the part of the policy for one rule, as CEL.
type Text struct {
	// Concerns is the expression that the rule selects the object, and that the object lacks what the rule adds. If it is
	// false for all rules, the API server does not evaluate the patch.
	Concerns string
	// Hold is the expression for what to add, or an empty map.
	Hold string
}

func (t Text) size() int { return len(t.Concerns) + len(t.Hold) }

func (c *Compiled) add(name string, text Text) {
	c.rules[name] = text
	c.order = append(c.order, name)
}

// Texts returns the text of each rule, by the name of the rule's variable. The caller must not change them.
func (c Compiled) Texts() map[string]Text { return c.rules }

// Covers reports whether the policy contains the rule with this UID.
func (c Compiled) Covers(uid types.UID) bool {
	_, ok := c.rules[VariableOf(uid)]
	return ok
}

// Variables returns the names of all variables of rules in the policy, also if the policy is edited.
func (c Compiled) Variables() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(c.rules)), maps.Keys(c.edited))
}

// Names reports whether the policy has a variable with this name, also if the policy is edited.
func (c Compiled) Names(variable string) bool {
	_, ok := c.rules[variable]
	return ok || c.edited[variable]
}

// Edited reports whether the stored policy differs from every policy that this version compiles.
func (c Compiled) Edited() bool { return c.edited != nil }

// LeavesOut reports whether the rule of this UID was left out because it does not fit.
func (c Compiled) LeavesOut(uid types.UID) bool { return c.leftOut[VariableOf(uid)] }

// Keeps reports whether both policies have the same text for the rule with this UID.
func (c Compiled) Keeps(uid types.UID, other Compiled) bool {
	text, ok := other.rules[VariableOf(uid)]
	return ok && c.rules[VariableOf(uid)] == text
}

// Drops reports whether the other policy contains a rule that this one does not.
func (c Compiled) Drops(other Compiled) bool {
	for name := range other.rules {
		if _, ok := c.rules[name]; !ok {
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

// Equal reports whether two policies have the same texts, and leave out the same rules.
func (c Compiled) Equal(other Compiled) bool {
	return slices.Equal(c.order, other.order) && maps.Equal(c.rules, other.rules) && maps.Equal(c.leftOut, other.leftOut) && maps.Equal(c.edited, other.edited)
}

// build puts the texts of rules together, oldest first. Rules that do not fit are left out.
func build(rules iter.Seq2[types.UID, Text]) Compiled {
	c := Compiled{rules: map[string]Text{}, leftOut: map[string]bool{}}
	size, listed := 0, 0
	for uid, text := range rules {
		name := VariableOf(uid)
		entry := len(text.Concerns) + len(name) + len(" ? variables. : {},\n")
		if text.size() > maxRuleText || size+text.size() > maxText || listed+entry > maxListed {
			c.leftOut[name] = true
			continue
		}
		size, listed = size+text.size(), listed+entry
		c.add(name, text)
	}
	return c
}

// concernsAny is the expression that some rule is concerned, between the parts that all rules share. It is one expression,
// which stops at the first rule that is concerned. Match conditions cannot use variables.
func (c Compiled) concernsAny(start, end string) string {
	if len(c.order) == 0 {
		return "false"
	}
	terms := make([]string, len(c.order))
	for i, name := range c.order {
		terms[i] = c.rules[name].Concerns
	}
	return start + strings.Join(terms, or) + end
}

// or joins the expressions of all rules. None of them has a line break: texts are quoted.
const or = " ||\n"

// readCompiled returns the part of a stored policy that depends on rules; their concerns are between start and end. A
// policy whose other parts differ from spec is edited: it covers no rule.
func readCompiled(stored *admissionv1.MutatingAdmissionPolicySpec, start, end string, spec func(Compiled) admissionv1.MutatingAdmissionPolicySpec) Compiled {
	c := Compiled{rules: map[string]Text{}}
	var concerns []string
	if len(stored.MatchConditions) > 0 {
		concerns = strings.Split(strings.TrimSuffix(strings.TrimPrefix(stored.MatchConditions[0].Expression, start), end), or)
	}
	for _, variable := range stored.Variables {
		if !strings.HasPrefix(variable.Name, variablePrefix) {
			continue
		}
		text := Text{Hold: variable.Expression}
		if i := len(c.order); i < len(concerns) {
			text.Concerns = concerns[i]
		}
		c.add(variable.Name, text)
	}
	if equality.Semantic.DeepEqual(spec(c), *stored) {
		return c
	}
	edited := Compiled{edited: map[string]bool{}}
	for name := range c.rules {
		edited.edited[name] = true
	}
	return edited
}
