package admission_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// nasty are texts that end a literal, escape its end or mean something in one, somewhere.
var nasty = []string{
	`"`, `'`, "`", `"""`, `'''`, `\`, `\\`, `\"`, `\u`, `\x`, `\U0010ffff`, `"}`, `"]`, `")`, `" || true || "`, `" + variables.rules + "`, "${a}", "%s",
	"\n", "\r\n", "\t", "\v", "\x00", "\x1b", "\x7f", "\u0085", "\u00ad", "\u2028", "\ufeff", "\ufffd", "\xff", "\xed\xa0\x80", "é", "\U0001f600", "\U0010ffff",
	"//", "/*", "~", "~1", "/", "{", "}", "#", " ", "",
}

// anyText is a text of whatever characters, or of nasty pieces.
func anyText() *rapid.Generator[string] {
	pieces := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 6).Draw(t, "pieces"), "")
	})
	return rapid.OneOf(rapid.String(), pieces, rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 12), func(b []byte) string { return string(b) }))
}

func TestQuotedTextEvaluatesToTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(anyText(), 1, 40).Draw(t, "texts")
		var literals, want []string
		for _, text := range texts {
			literals, want = append(literals, admission.Quote(text)), append(want, strings.ToValidUTF8(text, "\ufffd"))
		}
		m := newMutator(t, admissionv1.MutatingAdmissionPolicySpec{Mutations: []admissionv1.Mutation{{JSONPatch: &admissionv1.JSONPatch{
			Expression: fmt.Sprintf(`[JSONPatch{op: "add", path: "/spec/podCIDRs", value: [%s]}]`, strings.Join(literals, ", ")),
		}}}})
		wantEqual(t, "read back", m.admit(t, created(node())).Spec.PodCIDRs, want)
	})
}

// A rule decides what is in its literals and nothing else: however odd its texts, the policy
// compiles, and is the same but for the literals.
func TestNoTextOfARuleCanChangeTheExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := genOddRule(t)
		tame := odd.DeepCopy()
		tame.Name = "tame"
		for i := range tame.Spec.Conditions {
			tame.Spec.Conditions[i].Type = fmt.Sprint("Condition", i)
		}
		got, want := admission.TaintNewNodesSpec(taintNewNodes(odd)), admission.TaintNewNodesSpec(taintNewNodes(tame))
		if len(got.Variables) != len(want.Variables) {
			t.Fatalf("%d variables, want %d", len(got.Variables), len(want.Variables))
		}
		for i := range got.Variables {
			if got, want := withoutLiterals(got.Variables[i]), withoutLiterals(want.Variables[i]); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		}
	})
}

var literal = regexp.MustCompile(`"([^"\\]|\\.)*"`)

func withoutLiterals(v admissionv1.Variable) string {
	return v.Name + ": " + literal.ReplaceAllString(v.Expression, `""`)
}

func TestPolicyAndCoreAgreeOnUnusualTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := genOddRule(t)
		w := world{book: noderule.NewRulebook(rules(odd)), mutator: newMutator(t, admission.TaintNewNodesSpec(taintNewNodes(odd)))}
		for range 8 {
			n := genNodeFor(t, odd)
			after := w.mutator.admit(t, created(n.DeepCopy()))
			w.check(t, n, after, noderule.OriginCreated, func(rule *noderule.Rule) bool {
				return noderule.Evaluate(rule, noderule.NodeOf(n), noon).State == noderule.Held
			})
		}
	})
}

// A rule whose labels or taint could not be those of a node is not valid, and not in the text.
func TestTextsThatNoNodeCanHaveAreNotCompiled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		for what, option := range map[string]ruleOption{
			"label key":        selects(text, "a"),
			"label value":      selects("a", text),
			"expression key":   selectsBy(expression(text, "Exists")),
			"expression value": selectsBy(expression("a", "NotIn", v1alpha1.LabelValue(text))),
			"operator":         selectsBy(expression("a", text)),
			"taint key":        taintKey("readiness.k8s.io/" + text),
			"taint value":      taintValue(text),
			"effect":           taintEffect(corev1.TaintEffect(text)),
		} {
			r := rule("r", option)
			valid := noderule.NewRulebook(rules(r)).Rule(r.UID).Problem == nil
			if got := taintNewNodes(r).Covers(r.UID); got != valid {
				t.Fatalf("%s %q: valid %t, compiled %t", what, text, valid, got)
			}
			if valid && regexp.MustCompile(`[^-A-Za-z0-9_./]`).MatchString(text) {
				t.Fatalf("%s %q is reported as valid", what, text)
			}
		}
	})
}

// genOddRule is a valid rule with the oddest texts that it can have: its name and condition
// types may be anything.
func genOddRule(t *rapid.T) *v1alpha1.NodeReadinessRule {
	types := rapid.SliceOfNDistinct(anyText(), 1, 4, func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }).Draw(t, "types")
	var requirements []v1alpha1.ConditionRequirement
	for _, conditionType := range types {
		requirements = append(requirements, requirement(strings.ToValidUTF8(conditionType, "\ufffd"), rapid.SampledFrom(allStatuses).Draw(t, "status")))
	}
	word := rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,9}[A-Za-z0-9])?`)
	expressions := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.NodeSelectorRequirement {
		key := rapid.StringMatching(`([a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?(\.[a-z0-9]{1,5})?/)?`).Draw(t, "prefix") + word.Draw(t, "key")
		operator := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
		if operator == "Exists" || operator == "DoesNotExist" {
			return expression(key, operator)
		}
		values := rapid.SliceOfN(rapid.Map(rapid.OneOf(word, rapid.Just("")), func(s string) v1alpha1.LabelValue { return v1alpha1.LabelValue(s) }), 1, 3).Draw(t, "values")
		return expression(key, operator, values...)
	}), 1, 3).Draw(t, "expressions")
	return rule(anyText().Draw(t, "name"), selectsBy(expressions...), requires(requirements...), taintValue(word.Draw(t, "taint value")))
}

// genNodeFor is a node with or without the labels and conditions that the rule names.
func genNodeFor(t *rapid.T, r *v1alpha1.NodeReadinessRule) *corev1.Node {
	n := node(nodeCreatedAt(noon))
	for _, e := range r.Spec.NodeSelector.MatchExpressions {
		values := append(slices.Clone(e.Values), "other")
		if e.Operator != "DoesNotExist" && !oneIn(t, 6, "no label") {
			label(e.Key, string(rapid.SampledFrom(values).Draw(t, "label")))(n)
		}
	}
	for _, q := range r.Spec.Conditions {
		if oneIn(t, 4, "wrong condition") {
			reports(q.Type+`"`, q.RequiredStatus)(n)
		}
		if !oneIn(t, 3, "no condition") {
			reports(q.Type, rapid.SampledFrom(allStatuses).Draw(t, "status"))(n)
		}
	}
	return n
}

// Each rule gets its own variable, whatever its UID.
func TestVariablesAreIdentifiers(t *testing.T) {
	spec := admission.TaintNewNodesSpec(taintNewNodes(rule("a"), rule("b", taintKey("readiness.k8s.io/B")), rule("c", taintKey("readiness.k8s.io/C"))))
	names := sets.New[string]()
	for _, v := range spec.Variables {
		if !regexp.MustCompile(`^[a-z][A-Za-z0-9_]*$`).MatchString(v.Name) {
			t.Errorf("%s is no identifier", v.Name)
		}
		names.Insert(v.Name)
	}
	if names.Len() != len(spec.Variables) {
		t.Errorf("two variables of one name: %v", spec.Variables)
	}
}
