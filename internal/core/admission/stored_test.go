package admission_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/readygate/readygate/internal/core/admission"
)

func TestAPolicyCanBeReadBack(t *testing.T) {
	b := taintNewNodes(goldenRules()...)
	spec := admission.TaintNewNodesSpec(b)
	if read := admission.ReadTaintNewNodes(&spec); !read.Equal(b) {
		t.Errorf("wrote %+v\nread %+v", b, read)
	}
	empty := admission.TaintNewNodesPolicy().Spec
	if read := admission.ReadTaintNewNodes(&empty); !read.Equal(admission.Compiled{}) || !taintNewNodes().Equal(read) {
		t.Errorf("of no rules, read %+v", read)
	}
}

// A policy that a user has edited is not reliable, even if it contains a rule.
func TestAnEditedPolicyCoversNothing(t *testing.T) {
	for name, edit := range map[string]func(*admissionv1.MutatingAdmissionPolicySpec){
		"a match condition is added": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConditions = append(s.MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"a match condition goes": func(s *admissionv1.MutatingAdmissionPolicySpec) { s.MatchConditions = s.MatchConditions[1:] },
		"a resource": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules[0].Resources = []string{"pods"}
		},
		"an operation goes": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{"UPDATE"}
		},
		"some nodes are left out": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConstraints.ObjectSelector.MatchLabels = map[string]string{"a": "b"}
		},
		"a variable":        func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Variables[0].Expression = "false" },
		"the list of rules": func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Variables[len(s.Variables)-2].Expression = "[]" },
		"a rule stands elsewhere": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			i := len(s.Variables) - 3 // the rule
			s.Variables[0], s.Variables[i] = s.Variables[i], s.Variables[0]
		},
		"a rule is not in the list": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Variables = append(s.Variables, admissionv1.Variable{Name: "rule_x", Expression: "{}"})
		},
		"the patch":             func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Mutations[0].JSONPatch.Expression = "[]" },
		"a second patch":        func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Mutations = append(s.Mutations, s.Mutations[0]) },
		"it fails closed":       func(s *admissionv1.MutatingAdmissionPolicySpec) { *s.FailurePolicy = admissionv1.Fail },
		"it is asked only once": func(s *admissionv1.MutatingAdmissionPolicySpec) { s.ReinvocationPolicy = "Never" },
		"it has params": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.ParamKind = &admissionv1.ParamKind{Kind: "ConfigMap"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := admission.TaintNewNodesSpec(taintNewNodes(rule("network")))
			edit(&spec)
			if read := admission.ReadTaintNewNodes(&spec); read.Covers(uidOf("network")) || len(read.Texts()) > 0 {
				t.Errorf("read %+v", read)
			}
		})
	}
}

func TestPoliciesAreComparedRuleByRule(t *testing.T) {
	a, b := rule("a"), rule("b", taintKey("readiness.k8s.io/B"))
	changed := rule("a", takenOverAt(noon), bootstrapOnly)
	zoned := rule("a", takenOverAt(noon.In(time.FixedZone("", 3600))), bootstrapOnly)
	both, onlyA, other := taintNewNodes(a, b), taintNewNodes(a), taintNewNodes(changed, b)
	for what, c := range map[string]struct{ got, want bool }{
		"the same rules make the same policy":      {taintNewNodes(b, a).Equal(both), true},
		"in whatever time zone":                    {taintNewNodes(zoned).Equal(taintNewNodes(changed)), true},
		"in another order it is another":           {taintNewNodes(rule("a", younger), b).Equal(taintNewNodes(a, rule("b", younger, taintKey("readiness.k8s.io/B")))), false},
		"other rules do not":                       {onlyA.Equal(both), false},
		"nor does a rule that has changed":         {other.Equal(both), false},
		"a rule that is in both is kept":           {both.Keeps(a.UID, onlyA), true},
		"one that has changed is not":              {both.Keeps(a.UID, other), false},
		"another one is, all the same":             {both.Keeps(b.UID, other), true},
		"one that is in neither is not":            {onlyA.Keeps("x", onlyA), false},
		"one that only this one has is not":        {both.Keeps(b.UID, onlyA), false},
		"one that only the other has is not":       {onlyA.Keeps(b.UID, both), false},
		"leaving a rule out drops it":              {onlyA.Drops(both), true},
		"adding one drops nothing":                 {both.Drops(onlyA), false},
		"changing one drops nothing":               {other.Drops(both), false},
		"a policy without rules drops all":         {admission.Compiled{}.Drops(onlyA), true},
		"and covers none":                          {admission.Compiled{}.Covers(a.UID), false},
		"nothing is dropped where nothing was":     {onlyA.Drops(admission.Compiled{}), false},
		"a policy without rules is one of no rule": {taintNewNodes().Equal(admission.Compiled{}), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %t", what, c.got)
		}
	}
}
