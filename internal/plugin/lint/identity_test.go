package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

func TestARuleNeedsVersionAndKind(t *testing.T) {
	const version, kind = "apiVersion: readiness.node.x-k8s.io/v1alpha1\n", "kind: NodeReadinessRule\n"
	const list = version + "kind: NodeReadinessRuleList\nitems:\n"
	wrong := rule("NoSchedule", "NoScheduling")
	for name, c := range map[string]struct{ manifest, want string }{
		"no apiVersion":          {rule(version, ""), "error | a.yaml | NodeReadinessRule/network |  | looks like a rule but has no apiVersion"},
		"no kind":                {rule(kind, ""), "error | a.yaml | network |  | looks like a rule but has no kind"},
		"neither":                {rule(version, "", kind, ""), "error … looks like a rule but has no apiVersion and no kind"},
		"no kind and no spec":    {version + "metadata: {name: a}\n", "error … looks like a rule but has no kind"},
		"another case":           {rule(kind, "kind: Nodereadinessrule\n"), `error | a.yaml | Nodereadinessrule/network | kind | is "Nodereadinessrule", which is not a kind of readiness.node.x-k8s.io`},
		"another kind":           {rule(kind, "kind: ReadinessRule\n"), "error … | kind | is \"ReadinessRule\", which is not a kind"},
		"another case and group": {rule(kind, "kind: nodereadinessrule\n", version, "apiVersion: v1\n"), "error … | kind | is \"nodereadinessrule\""},
		"an item without kind":   {list + item(wrong, "kind", "apiVersion"), "error | a.yaml | NodeReadinessRule/network | spec.taint.effect"},
		"an item of a List":      {"apiVersion: v1\nkind: List\nitems:\n" + item(rule(), "kind"), "error | a.yaml | network |  | looks like a rule but has no kind"},
		"a list in a list":       {"apiVersion: v1\nkind: List\nitems:\n" + item(list+item(wrong)), "error … NodeReadinessRule/network | spec.taint.effect"},
		"a scalar in a list":     {list + item(rule()) + "- network\n", "error | a.yaml | NodeReadinessRuleList/ | items[1] | is not a Kubernetes object"},
		"items a map":            {version + "kind: NodeReadinessRuleList\nitems: {a: {}}\n", "error … | items | is not a list"},
		"items of a List a map":  {"apiVersion: v1\nkind: List\nitems: {a: {}}\n", "error … | items | is not a list"},
		"neither, and no rule":   {"replicas: 1\n", "warning … has no apiVersion and no kind and was skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			report := check(t, c.manifest)
			expect(t, lines(report, lint.Warning), c.want)
			if report.Findings[0].Do == "" {
				t.Error("it does not say what to do")
			}
		})
	}
}

func TestRulesOfATypedListAreRules(t *testing.T) {
	report := check(t, "apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRuleList\nitems:\n"+item(rule(), "kind", "apiVersion"))
	expect(t, lines(report, lint.Warning))
	if len(report.Rules) != 1 {
		t.Errorf("%d rules", len(report.Rules))
	}
}

func TestGenerateName(t *testing.T) {
	generated := rule("name: network", "generateName: net-")
	other := rule("name: network", "generateName: net-", "workers", "others")
	report := check(t, generated, other)
	expect(t, lines(report, lint.Warning))
	if len(report.Rules) != 2 || report.Rules[0].Name != "net-…" || report.Rules[1].Name != "net-…2" {
		t.Fatalf("rules %v", report.Rules)
	}
	if all := strings.Join(lines(report, lint.Info), "\n"); !strings.Contains(all, "info | a.yaml | NodeReadinessRule/net-… | metadata.generateName | kubectl apply does not support generateName") {
		t.Error(all)
	}
	expect(t, lines(check(t, rule("name: network", "generateName: Net_")), lint.Warning),
		"error | a.yaml | NodeReadinessRule/Net_… | metadata.generateName", `error … | metadata.name | Invalid value: "Net_xxxxx": … lowercase RFC 1123`)
	expect(t, lines(check(t, rule("name: network", "generateName: "+strings.Repeat("n", 80))), lint.Warning))
	expect(t, lines(check(t, rule("name: network", "name: network\n  generateName: net-")), lint.Warning)) // has a name
}
