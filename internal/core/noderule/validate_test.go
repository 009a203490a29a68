package noderule_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The CRD rejects most of these specs. A rule that was stored under another CRD of the same API can still have one, and its
// status must name the field to fix.
func TestInvalidRulesNameTheField(t *testing.T) {
	for name, c := range map[string]struct {
		option ruleOption
		want   []string
	}{
		"a foreign taint key":              {taintKey(notReady), []string{"spec.taint.key", "must start with readiness.k8s.io/", notReady}},
		"a prefix that only looks alike":   {taintKey("readiness.k8s.io.evil/x"), []string{"spec.taint.key", "must start with"}},
		"a prefix that only ends alike":    {taintKey("my.readiness.k8s.io/x"), []string{"spec.taint.key", "must start with"}},
		"a taint key without a name":       {taintKey("readiness.k8s.io/"), []string{"spec.taint.key"}},
		"a taint key with two slashes":     {taintKey("readiness.k8s.io/a/b"), []string{"spec.taint.key"}},
		"a taint key that ends in a dash":  {taintKey("readiness.k8s.io/a-"), []string{"spec.taint.key"}},
		"a taint key that is too long":     {taintKey("readiness.k8s.io/" + strings.Repeat("a", 64)), []string{"spec.taint.key"}},
		"a taint value with spaces":        {taintValue("not yet"), []string{"spec.taint.value", "not yet"}},
		"a taint value that is too long":   {taintValue(strings.Repeat("a", 64)), []string{"spec.taint.value"}},
		"an unknown effect":                {taintEffect("NoWay"), []string{"spec.taint.effect", "NoWay", "NoSchedule"}},
		"no effect":                        {taintEffect(""), []string{"spec.taint.effect"}},
		"no conditions":                    {requires(), []string{"spec.conditions"}},
		"an unknown required status":       {requires(requirement("A", True), requirement("B", "Maybe")), []string{"spec.conditions[1].requiredStatus", "Maybe"}},
		"an unknown default status":        {requires(withDefault(requirement("A", True), "Perhaps")), []string{"spec.conditions[0].defaultStatus", "Perhaps"}},
		"an unknown mode":                  {func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = "sometimes" }, []string{"spec.enforcementMode", "sometimes"}},
		"an unknown policy":                {func(r *v1alpha1.NodeReadinessRule) { r.Spec.ConditionPolicy = "mostOf" }, []string{"spec.conditionPolicy", "mostOf"}},
		"no selector":                      {selectsBy(), []string{"spec.nodeSelector"}},
		"a malformed key in matchLabels":   {selects("Not/A/Key", "x"), []string{"spec.nodeSelector.matchLabels[Not/A/Key]"}},
		"a malformed value in matchLabels": {selects("role", "no good"), []string{"spec.nodeSelector.matchLabels[role]", "no good"}},
		"a malformed key in an expression": {selectsBy(expression("ok", "Exists"), expression("-", "Exists")), []string{"spec.nodeSelector.matchExpressions[1]"}},
		"an unknown operator":              {selectsBy(expression("role", "Gt", "1")), []string{"spec.nodeSelector.matchExpressions[0].operator", "Gt"}},
		"In without values":                {selectsBy(expression("role", "In")), []string{"spec.nodeSelector.matchExpressions[0]"}},
		"NotIn without values":             {selectsBy(expression("role", "NotIn")), []string{"spec.nodeSelector.matchExpressions[0]"}},
		"Exists with values":               {selectsBy(expression("role", "Exists", "x")), []string{"spec.nodeSelector.matchExpressions[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := compiled(rule("bad", c.option))
			if r.Problem == nil || r.Problem.Reason != v1alpha1.ReasonInvalid {
				t.Fatalf("got problem %v, want Invalid", r.Problem)
			}
			for _, part := range c.want {
				if !strings.Contains(r.Problem.Message, part) {
					t.Errorf("%q does not say %q", r.Problem.Message, part)
				}
			}
			if r.Selects(worker()) {
				t.Error("an invalid rule must select nothing")
			}
		})
	}
}

func TestEveryMistakeIsNamed(t *testing.T) {
	r := rule("bad", taintKey("example.com/x"), taintValue("no good"), taintEffect("NoWay"), requires(), selectsBy())
	message := compiled(r).Problem.Message
	for _, field := range []string{"taint.key", "taint.value", "taint.effect", "conditions", "nodeSelector"} {
		if !strings.Contains(message, "spec."+field) {
			t.Errorf("%q does not name spec.%s", message, field)
		}
	}
}

// The message becomes a condition of the rule: if it differed between two reconciles, the manager would write the status
// forever.
func TestTheMessageIsTheSameEveryTime(t *testing.T) {
	bad := rule("bad")
	bad.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"a/a/a": "x", "b/b/b": "x", "c/c/c": "x", "d/d/d": "x"}
	want := compiled(bad).Problem.Message
	for range 50 {
		if got := compiled(bad).Problem.Message; got != want {
			t.Fatalf("got %q, then %q", want, got)
		}
	}
}

func TestValidRules(t *testing.T) {
	for name, option := range map[string]ruleOption{
		"the autoscaler's prefix":    taintKey("startup-taint.cluster-autoscaler.kubernetes.io/cni"),
		"no taint value":             taintValue(""),
		"PreferNoSchedule":           taintEffect("PreferNoSchedule"),
		"an empty label value":       selects("node-role.kubernetes.io/worker", ""),
		"the longest taint name":     taintKey("readiness.k8s.io/" + strings.Repeat("a", 63)),
		"all four operators":         selectsBy(expression("a", "In", "x"), expression("b", "NotIn", "x", ""), expression("c", "Exists"), expression("d", "DoesNotExist")),
		"allOf written out":          func(r *v1alpha1.NodeReadinessRule) { r.Spec.ConditionPolicy = v1alpha1.ConditionPolicyAllOf },
		"a condition type with path": requires(requirement("network.k8s.io/CalicoReady", True)),
	} {
		t.Run(name, func(t *testing.T) {
			if problem := compiled(rule("good", option)).Problem; problem != nil {
				t.Errorf("refused: %s", problem.Message)
			}
		})
	}
}

func TestAnInvalidRuleDoesNotStopOthers(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("bad", selectsBy()), rule("good", younger)))
	wantEqual(t, "rules", standings(book), []string{"bad: Invalid", "good"})
	wantEqual(t, "changes", changes(book.Plan(worker(), noon)), []string{"Added good"})
}
