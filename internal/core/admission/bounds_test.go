package admission_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// manyRules are as many rules, each with a taint of its own.
func manyRules(n int, options ...ruleOption) []*v1alpha1.NodeReadinessRule {
	var objs []*v1alpha1.NodeReadinessRule
	for i := range n {
		own := taintKey(fmt.Sprintf("readiness.k8s.io/rule-%d", i))
		objs = append(objs, rule(fmt.Sprintf("rule-%d", i), append([]ruleOption{own}, options...)...))
	}
	return objs
}

// tall requires as much as a rule can, of types of this many characters, all of them met by
// heavyNode.
func tall(length int) ruleOption {
	var requirements []v1alpha1.ConditionRequirement
	for i := range 32 {
		requirements = append(requirements, requirement(conditionType(i, length), False))
	}
	return requires(requirements...)
}

func conditionType(i, length int) string {
	return fmt.Sprintf("%d/%s", i, strings.Repeat("c", max(length-3, 0)))
}

// heavyNode is a worker with more of everything than clouds put on nodes.
func heavyNode() *corev1.Node {
	n := worker(tainted(notReady + ":NoSchedule"))
	for i := range 60 {
		label(fmt.Sprintf("example.com/label-%d", i), "value")(n)
		annotated(fmt.Sprintf("example.com/note-%d", i), strings.Repeat("value ", 50))(n)
	}
	for i := range 20 {
		tainted(fmt.Sprintf("example.com/taint-%d:NoSchedule", i))(n)
	}
	for i := range 100 {
		reports(conditionType(i, 0), False)(n)
	}
	return n
}

// textOf is how much text the rules make.
func textOf(b admission.Compiled) (size int) {
	for _, text := range b.Texts() {
		size += len(text.Concerns) + len(text.Hold)
	}
	return size
}

func coveredOf(b admission.Compiled, objs []*v1alpha1.NodeReadinessRule) (covered int) {
	for _, obj := range objs {
		if b.Covers(obj.UID) {
			covered++
		}
	}
	return covered
}

func TestOnlyRulesThatAreTooLargeAreLeftOut(t *testing.T) {
	b := taintNewNodes(rule("network"),
		rule("wide", younger, taintKey("readiness.k8s.io/Wide"), wide("a", 64, 256)),
		rule("tall", younger, taintKey("readiness.k8s.io/Tall"), requires(requirement(strings.Repeat("\U0001f600", 316), True)), func(r *v1alpha1.NodeReadinessRule) {
			for i := range 31 {
				r.Spec.Conditions = append(r.Spec.Conditions, requirement(fmt.Sprint(i, strings.Repeat("\U0001f600", 314)), True))
			}
		}),
		rule("storage", younger, taintKey("readiness.k8s.io/StorageReady")))
	for name, want := range map[string]bool{"network": true, "wide": false, "tall": false, "storage": true} {
		if got := b.Covers(uidOf(name)); got != want {
			t.Errorf("%s: covered %t, want %t", name, got, want)
		}
		if got := b.LeavesOut(uidOf(name)); got == want {
			t.Errorf("%s: left out %t", name, got)
		}
	}
	wantEqual(t, "taints", taintStrings(newMutator(t, admission.TaintNewNodesSpec(b)).admit(t, created(worker())).Spec.Taints),
		[]string{hold, "readiness.k8s.io/StorageReady=pending:NoSchedule"})
}

// The largest policies that there can be still are policies, and a heavy node that all rules
// hold does not exceed their budget: a policy that fails would hold no node.
func TestTheLargestPoliciesWork(t *testing.T) {
	for name, objs := range map[string][]*v1alpha1.NodeReadinessRule{
		"as many rules as fit": manyRules(admission.MaxText / 500),
		"rules as wide as fit": manyRules(20, excluding(10, 60)),
	} {
		t.Run(name, func(t *testing.T) {
			b := taintNewNodes(objs...)
			covered := coveredOf(b, objs)
			if covered == len(objs) || textOf(b) < admission.MaxText*9/10 {
				t.Fatalf("%d of %d rules and %d characters are not as much as fits", covered, len(objs), textOf(b))
			}
			want := len(heavyNode().Spec.Taints) + covered
			if got := newMutator(t, admission.TaintNewNodesSpec(b)).admit(t, created(heavyNode())); len(got.Spec.Taints) != want {
				t.Errorf("%d taints, want %d", len(got.Spec.Taints), want)
			}
		})
	}
}

// excluding selects nodes that have none of many labels: every value is compared.
func excluding(expressions, values int) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		wide("a", expressions, values)(r)
		for i := range r.Spec.NodeSelector.MatchExpressions {
			r.Spec.NodeSelector.MatchExpressions[i].Operator = "NotIn"
		}
	}
}

// Rules with many requirements cost most. One of them is compiled here and given its share of
// the budget; all that fit would take long.
func TestMostExpensiveRulesStayWithinTheCostBudget(t *testing.T) {
	for _, length := range []int{0, 316} {
		b := taintNewNodes(rule("r", tall(length)))
		m := newMutator(t, admission.TaintNewNodesSpec(b))
		m.budget = celconfig.RuntimeCELCostBudget / int64(admission.MaxText/textOf(b)+1)
		m.admit(t, created(heavyNode()))
	}
}
