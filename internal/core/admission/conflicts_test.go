package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// proposed is the creation of a rule while another one exists.
func proposed(t rapid.TB, r, existing *v1alpha1.NodeReadinessRule) request {
	t.Helper()
	return request{
		kind: v1alpha1.GroupVersion.WithKind("NodeReadinessRule"), resource: "nodereadinessrules", operation: apiadmission.Create,
		object: untyped(t, r), params: untyped(t, existing),
	}
}

func accepted(status metav1.ConditionStatus) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: status})
	}
}

func TestARuleInConflictIsRefused(t *testing.T) {
	workers := rule("workers")
	in := func(values ...v1alpha1.LabelValue) ruleOption { return selectsBy(expression("role", "In", values...)) }
	notIn := func(values ...v1alpha1.LabelValue) ruleOption {
		return selectsBy(expression("role", "NotIn", values...))
	}
	cases := map[string]struct {
		existing *v1alpha1.NodeReadinessRule // workers if nil
		rule     *v1alpha1.NodeReadinessRule
		refused  bool
	}{
		"same taint, same nodes":             {rule: rule("new"), refused: true},
		"same taint, nodes that can be both": {rule: rule("new", selects("os", "linux")), refused: true},
		"a value of the taint is no matter":  {rule: rule("new", taintValue("other")), refused: true},
		"other nodes":                        {rule: rule("new", selects("role", "gateway"))},
		"another key":                        {rule: rule("new", taintKey("readiness.k8s.io/Other"))},
		"another effect":                     {rule: rule("new", taintEffect(corev1.TaintEffectNoExecute))},
		"the same rule":                      {rule: rule("workers")},
		"it only previews":                   {rule: rule("new", dryRun)},
		"the other only previews":            {existing: rule("workers", dryRun), rule: rule("new")},
		"the other is being deleted":         {existing: rule("workers", deleting), rule: rule("new")},
		"the other is accepted":              {existing: rule("workers", accepted(metav1.ConditionTrue)), rule: rule("new"), refused: true},
		"the other is not accepted":          {existing: rule("workers", accepted(metav1.ConditionFalse)), rule: rule("new")},
		"the other has no Accepted yet":      {existing: rule("workers", accepted(metav1.ConditionUnknown)), rule: rule("new"), refused: true},
		"In with a value of the other":       {rule: rule("new", in("gateway", "worker")), refused: true},
		"In without":                         {rule: rule("new", in("gateway", "edge"))},
		"NotIn with a value of the other":    {rule: rule("new", notIn("worker", "edge"))},
		"NotIn without":                      {rule: rule("new", notIn("edge")), refused: true},
		"Exists":                             {rule: rule("new", selectsBy(expression("role", "Exists"))), refused: true},
		"DoesNotExist":                       {rule: rule("new", selectsBy(expression("role", "DoesNotExist")))},
		"two NotIn":                          {existing: rule("workers", notIn("a")), rule: rule("new", notIn("b")), refused: true},
		"NotIn and DoesNotExist":             {existing: rule("workers", notIn("a")), rule: rule("new", selectsBy(expression("role", "DoesNotExist"))), refused: true},
		"Exists and DoesNotExist":            {existing: rule("workers", selectsBy(expression("role", "Exists"))), rule: rule("new", selectsBy(expression("role", "DoesNotExist")))},
		"In, less what NotIn leaves":         {existing: rule("workers", in("a", "b")), rule: rule("new", notIn("b", "a"))},
		"NotIn leaves nothing of In":         {existing: rule("workers", selectsBy(expression("role", "In", "a", "b"), expression("role", "NotIn", "b"))), rule: rule("new", notIn("a"))},
		"In, DoesNotExist":                   {existing: rule("workers", in("a")), rule: rule("new", selectsBy(expression("role", "DoesNotExist")))},
		"Exists, NotIn":                      {existing: rule("workers", selectsBy(expression("role", "Exists"))), rule: rule("new", notIn("a")), refused: true},
		"two DoesNotExist":                   {existing: rule("workers", selectsBy(expression("role", "DoesNotExist"))), rule: rule("new", selectsBy(expression("role", "DoesNotExist"))), refused: true},
		"a selector that no node fits":       {rule: rule("new", selectsBy(expression("role", "Exists"), expression("role", "DoesNotExist")))},
		"an empty value is a value":          {existing: rule("workers", selects("role", "")), rule: rule("new", in("a", "")), refused: true},
	}
	v := newValidator(t, admission.Conflicts().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.existing == nil {
				c.existing = workers
			}
			if got := v.refuses(t, proposed(t, c.rule, c.existing)); (len(got) > 0) != c.refused {
				t.Errorf("refused: got %q, want %t", got, c.refused)
			}
		})
	}
}

func TestTheRefusalNamesTheOtherRuleAndTheTaint(t *testing.T) {
	v := newValidator(t, admission.Conflicts().Spec)
	wantEqual(t, "messages", v.refuses(t, proposed(t, rule("new"), rule("workers"))), []string{
		`rule "workers" manages the taint readiness.k8s.io/NetworkReady:NoSchedule on nodes that this rule can select too: ` +
			`use another taint or a nodeSelector that excludes its nodes, or delete that rule first`,
	})
}

// A manifest with nothing after a label's colon has null there, which means empty.
func TestANullLabelIsEmpty(t *testing.T) {
	v := newValidator(t, admission.Conflicts().Spec)
	null := func(object any) {
		content := object.(*unstructured.Unstructured).Object
		if err := unstructured.SetNestedField(content, nil, "spec", "nodeSelector", "matchLabels", "role"); err != nil {
			t.Fatal(err)
		}
	}
	empty, other := rule("workers", selects("role", "")), rule("workers", selects("role", "a"))
	for name, c := range map[string]struct {
		existing     *v1alpha1.NodeReadinessRule
		mine, theirs bool // null
		refused      bool
	}{
		"here":           {existing: empty, mine: true, refused: true},
		"there":          {existing: empty, theirs: true, refused: true},
		"on both sides":  {existing: empty, mine: true, theirs: true, refused: true},
		"is not a value": {existing: other, mine: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := proposed(t, rule("new", selects("role", "")), c.existing)
			if c.mine {
				null(r.object)
			}
			if c.theirs {
				null(r.params)
			}
			if got := v.refuses(t, r); (len(got) > 0) != c.refused {
				t.Errorf("refused: got %q, want %t", got, c.refused)
			}
		})
	}
}

// Admission and runtime settle conflicts alike, if the existing rule is older.
func TestConflictPolicyAndManagerAgree(t *testing.T) {
	v := newValidator(t, admission.Conflicts().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			existing, r := genValidRule(t, "existing"), genValidRule(t, "new")
			if oneIn(t, 8, "deleting") {
				deleting(existing)
			}
			younger(r)
			problem := noderule.NewRulebook(rules(existing, r)).Rule(r.UID).Problem
			if got, want := v.refuses(t, proposed(t, r, existing)), problem != nil; (len(got) > 0) != want {
				t.Fatalf("%+v\n%+v\nrefused %q, at runtime %+v", existing.Spec, r.Spec, got, problem)
			}
		}
	})
}

// genValidRule is a rule for one of two taints, so that two of them meet often.
func genValidRule(t *rapid.T, name string) *v1alpha1.NodeReadinessRule {
	id := rapid.SampledFrom(managedTaints[:2]).Draw(t, "taint")
	r := rule(name, taintKey(id.Key), taintEffect(id.Effect), genSelector(t))
	if oneIn(t, 8, "dry run") {
		dryRun(r)
	}
	return r
}

// wide is a selector of this many expressions with this many values each, of which it shares
// only the last with others, and in the last expression none: every value is looked at.
func wide(own string, expressions, values int) ruleOption {
	var list []v1alpha1.NodeSelectorRequirement
	for i := range expressions {
		e := expression(fmt.Sprintf("example.com/label-%d", i), "In")
		for j := range values - 1 {
			e.Values = append(e.Values, v1alpha1.LabelValue(fmt.Sprintf("%s-%d", own, j)))
		}
		list = append(list, e)
		if i < expressions-1 {
			list[i].Values = append(list[i].Values, "shared")
		}
	}
	return selectsBy(list...)
}

// An expression has a budget. A selector that goes beyond it is not decided at admission but
// at runtime; one that people write is.
func TestWideSelectorsAreComparedAtAdmission(t *testing.T) {
	v := newValidator(t, admission.Conflicts().Spec)
	existing := rule("existing", wide("a", 10, 20))
	if got := v.refuses(t, proposed(t, rule("new", wide("b", 10, 20)), existing)); len(got) > 0 {
		t.Errorf("they share no node, and yet: %s", got)
	}
	if got := v.refuses(t, proposed(t, rule("new", wide("a", 10, 20)), existing)); len(got) == 0 {
		t.Error("they share nodes, and it is not refused")
	}
}

func TestTheWidestSelectorsAreLeftToTheManager(t *testing.T) {
	v := newValidator(t, admission.Conflicts().Spec)
	_, err := v.validate(proposed(t, rule("new", wide("b", 64, 256)), rule("existing", wide("a", 64, 256))))
	if err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("got %v: if all selectors are decided now, say so where the policy is described", err)
	}
	if *admission.Conflicts().Spec.FailurePolicy != "Ignore" {
		t.Error("what cannot be decided must be let through")
	}
}
