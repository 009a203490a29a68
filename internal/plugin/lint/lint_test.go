package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// rule returns a valid manifest with the replacements of a case.
func rule(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: network
spec:
  conditions:
  - type: example.com/NetworkReady
    requiredStatus: "True"
  taint:
    key: readiness.k8s.io/NetworkReady
    value: pending
    effect: NoSchedule
  enforcementMode: bootstrap-only
  nodeSelector:
    matchLabels:
      example.com/pool: workers
`)
}

func check(t *testing.T, files ...string) *lint.Report {
	t.Helper()
	var inputs []lint.Input
	for i, text := range files {
		inputs = append(inputs, lint.Input{File: string(rune('a'+i)) + ".yaml", Data: []byte(text)})
	}
	report, err := lint.Check(inputs, lint.DefaultNodes)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// lines returns the findings of at least this severity, one per line: severity, file, object, field and message.
func lines(report *lint.Report, least lint.Severity) []string {
	var all []string
	for _, f := range report.Findings {
		if f.Severity == lint.Info && least != lint.Info {
			continue
		}
		all = append(all, strings.Join([]string{string(f.Severity), f.File, f.Object, f.Field, f.Message}, " | "))
	}
	return all
}

// expect fails unless there is exactly one finding per want, with all its words.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d findings, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, words := range want {
		for word := range strings.SplitSeq(words, " … ") {
			if !strings.Contains(got[i], word) {
				t.Errorf("%q is missing in %q", word, got[i])
			}
		}
	}
}

func TestAValidRuleHasNoFindings(t *testing.T) {
	report := check(t, rule())
	expect(t, lines(report, lint.Warning))
	if len(report.Rules) != 1 || report.Objects != 1 || report.Judged != 1 {
		t.Errorf("report %+v", report)
	}
}

func TestLintRejectsRules(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"unknown field":           {rule("  taint:", "  toleration: []\n  taint:"), "error | a.yaml | NodeReadinessRule/network | spec.toleration | is not a field"},
		"field of another case":   {rule("requiredStatus", "requiredstatus"), "error … spec.conditions[0].requiredstatus … is not a field\x00error … spec.conditions[0].requiredStatus … Required value"},
		"unknown field in a list": {rule(`requiredStatus: "True"`, "requiredStatus: \"True\"\n    color: red"), "error … spec.conditions[0].color … is not a field"},
		"unknown field in meta":   {rule("  name: network", "  name: network\n  title: x"), "error … metadata.title … is not a field"},
		"a field twice":           {rule("  enforcementMode:", "  enforcementMode: continuous\n  enforcementMode:"), `error | a.yaml | NodeReadinessRule/network |  | has a duplicate field … key "enforcementMode" already set`},
		"malformed label key":     {rule("example.com/pool", "_bad_/pool"), "error … spec … label key"},
		"no name":                 {rule("  name: network", "  labels: {}"), "error … metadata.name … Required value"},
		"version":                 {rule("v1alpha1", "v1"), `error … apiVersion … is "readiness.node.x-k8s.io/v1"`},
		"null in place of a spec": {"apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRule\nmetadata: {name: a}\nspec:\n", "error … spec … Required value"},
		"no YAML":                 {"a: [\n", "error | a.yaml |  |  | is not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, lines(check(t, c.manifest), lint.Warning), strings.Split(c.want, "\x00")...)
		})
	}
}

func TestRulesAreComparedOverAllFiles(t *testing.T) {
	second := rule("name: network", "name: second")
	expect(t, lines(check(t, rule(), second), lint.Warning),
		`error | b.yaml | NodeReadinessRule/second | spec.taint | applied in this order, rule "network" is older and manages the taint readiness.k8s.io/NetworkReady:NoSchedule`)
	expect(t, lines(check(t, rule()+"---\n"+second), lint.Warning), "error | a.yaml | NodeReadinessRule/second … applied in this order")
	expect(t, lines(check(t, rule(), rule("name: network", "name: second", "workers", "others")), lint.Warning)) // other nodes
	expect(t, lines(check(t, rule(), rule()), lint.Warning))                                                     // the same twice is one
	expect(t, lines(check(t, rule(), rule("NetworkReady", "Other")), lint.Warning), "error | b.yaml | NodeReadinessRule/network | metadata.name … in a.yaml")
}

func TestADryRunRuleIsNotInConflict(t *testing.T) {
	preview := rule("name: network", "name: preview", "spec:", "spec:\n  dryRun: true")
	report := check(t, rule(), preview)
	expect(t, lines(report, lint.Warning))
	if all := strings.Join(lines(report, lint.Info), "\n"); !strings.Contains(all, `info | b.yaml | NodeReadinessRule/preview | spec.dryRun | is true; if enforced, this rule would conflict with rule "network"`) {
		t.Error(all)
	}
}

func TestLintWarnsOfMistakes(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"label that is set later":    {rule("example.com/pool: workers", `node-role.kubernetes.io/worker: ""`), "warning … spec.nodeSelector … node-role.kubernetes.io/worker, which kubelets may not set"},
		"continuous evictions":       {rule("NoSchedule", "NoExecute", "bootstrap-only", "continuous"), "error … spec.maxUnavailable … a reporter that fails on all nodes would evict the pods of all nodes at once"},
		"a taint that holds nothing": {rule("NoSchedule", "PreferNoSchedule"), "warning … spec.taint.effect … is only a preference"},
		"a condition of the kubelet": {rule("example.com/NetworkReady", "Ready"), "warning … spec.conditions[0].type … Ready is written by the kubelet"},
		"no kind":                    {"apiVersion: v1\nmetadata: {name: x}\n", "warning … has no kind and was skipped"},
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

func TestAContinuousRuleMayRequireWhatKubernetesWrites(t *testing.T) {
	expect(t, lines(check(t, rule("example.com/NetworkReady", "Ready", "bootstrap-only", "continuous")), lint.Warning))
}

func TestAutoscalersAreNamedOncePerPrefix(t *testing.T) {
	second := rule("name: network", "name: second", "workers", "others")
	third := rule("name: network", "name: third", "readiness.k8s.io/", "startup-taint.cluster-autoscaler.kubernetes.io/")
	expect(t, lines(check(t, rule(), second, third), lint.Info),
		"info | a.yaml | NodeReadinessRule/network | spec.taint.key | Cluster Autoscaler does not treat",
		"info | c.yaml | NodeReadinessRule/third | spec.taint.key | Karpenter does not treat")
}

func TestOtherKindsAndListsAreFine(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n- " + strings.ReplaceAll(strings.TrimSpace(rule("NoSchedule", "NoScheduling")), "\n", "\n  ") + "\n"
	report := check(t, "# nothing\n---\napiVersion: example.com/v1\nkind: Whatever\nmetadata: {name: a}\nspec: {x: 1}\n---\n", list, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"json"}}`)
	expect(t, lines(report, lint.Warning), "error | b.yaml | NodeReadinessRule/network | spec.taint.effect")
	if report.Objects != 4 {
		t.Errorf("%d objects", report.Objects)
	}
}
