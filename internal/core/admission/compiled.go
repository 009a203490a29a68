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

// Bounds of the text. CEL takes 100,000 characters an expression, etcd 1.5 MiB an object; but
// a creation pays for all of it, and an API server compiles all of it at every change.
const (
	maxRuleText = 32 << 10
	maxText     = 128 << 10
	// maxListed is what two expressions may say of all rules: who of them is concerned. The rest is
	// for what stands around that.
	maxListed = 96_000
)

// Compiled is the part of a policy that rules decide: for each rule, by the name of its variable,
// its texts.
type Compiled struct {
	rules map[string]Text
	order []string
	// leftOut are the variables of rules that do not fit.
	leftOut map[string]bool
	// edited are the variables of rules in a text that cannot be relied on.
	edited map[string]bool
}

// Text is what the policy says of one rule, as CEL.
type Text struct {
	// Concerns is whether the rule selects the object and what it asks for is not there: if no
	// rule does, the API server does not even begin to make a patch.
	Concerns string
	// Hold is what to put on, or an empty map.
	Hold string
}

func (t Text) size() int { return len(t.Concerns) + len(t.Hold) }

func (c *Compiled) add(name string, text Text) {
	c.rules[name] = text
	c.order = append(c.order, name)
}

// Texts are what the policy says of each rule, by the name of the rule's variable. Nobody may
// change them.
func (c Compiled) Texts() map[string]Text { return c.rules }

// Covers reports whether the policy speaks of the rule of this UID.
func (c Compiled) Covers(uid types.UID) bool {
	_, ok := c.rules[VariableOf(uid)]
	return ok
}

// Variables are the names of all variables of rules in the policy, be it in a text that cannot
// be relied on.
func (c Compiled) Variables() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(c.rules)), maps.Keys(c.edited))
}

// Names reports whether a variable of this name is in the policy, be it in a text that cannot be
// relied on.
func (c Compiled) Names(variable string) bool {
	_, ok := c.rules[variable]
	return ok || c.edited[variable]
}

// Edited is true if the stored policy is not one that this version compiles from any rules.
func (c Compiled) Edited() bool { return c.edited != nil }

// LeavesOut reports whether the rule of this UID was left out because it does not fit.
func (c Compiled) LeavesOut(uid types.UID) bool { return c.leftOut[VariableOf(uid)] }

// Keeps reports whether the policy says of the rule of this UID what the other one says.
func (c Compiled) Keeps(uid types.UID, other Compiled) bool {
	text, ok := other.rules[VariableOf(uid)]
	return ok && c.rules[VariableOf(uid)] == text
}

// Drops reports whether the other policy speaks of a rule that this one does not.
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

// Equal reports whether two policies say the same, and leave out the same.
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

// concernsAny is the expression that some rule is concerned, between what all of them have in common.
// It is one expression, which stops at the first answer, and has no variables, because match
// conditions know none.
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

// readCompiled is the part of a stored policy that rules decide, if their concerns stand between
// start and end. A policy that is not, but for that, just what spec makes says nothing that can be
// relied on: it covers no rule.
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
