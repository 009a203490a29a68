package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// podRule returns a valid PodReadinessRule with the replacements of a case.
func podRule(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`apiVersion: readygate.dev/v1alpha1
kind: PodReadinessRule
metadata:
  name: network
spec:
  namespaceSelector:
    matchLabels:
      network-gate: "on"
  deadlineSeconds: 120
  components:
  - name: policy
    podCondition: {type: policy.example.com/programmed}
`)
}

func TestAValidPodRuleHasNoFindings(t *testing.T) {
	report := check(t, podRule(), rule())
	expect(t, lines(report, lint.Warning))
	if len(report.PodRules) != 1 || len(report.Rules) != 1 || report.Objects != 2 || report.Judged != 2 {
		t.Errorf("report %+v", report)
	}
}

func TestLintRejectsPodRules(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"unknown field":   {podRule("  deadlineSeconds:", "  deadline: 1\n  deadlineSeconds:"), "error | a.yaml | PodReadinessRule/network | spec.deadline | is not a field"},
		"version":         {podRule("v1alpha1", "v1"), `error … apiVersion … is "readygate.dev/v1", which is not a version of PodReadinessRule`},
		"another case":    {podRule("kind: PodReadinessRule", "kind: PodReadinessrule"), `error … kind … is "PodReadinessrule", which is not a kind of readygate.dev`},
		"no kind":         {podRule("kind: PodReadinessRule\n", ""), "error … looks like a rule but has no kind"},
		"two of one name": {podRule() + "---\n" + podRule("120", "60"), "error … metadata.name … another rule has this name, in a.yaml"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, c.manifest), lint.Warning), c.want) })
	}
}

// YAML reads on as true, and the API server's message does not name the missing quotes.
func TestMissingQuotesAreNamed(t *testing.T) {
	for _, value := range []string{"on", "true", "1"} {
		report := check(t, podRule(`network-gate: "on"`, "network-gate: "+value))
		expect(t, lines(report, lint.Warning), "error … spec.namespaceSelector.matchLabels.network-gate … must be of type string")
		if do := report.Findings[0].Do; !strings.Contains(do, `quote the value, for example "on"`) {
			t.Errorf("the next step for %s is %q", value, do)
		}
	}
	if do := check(t, podRule("name: policy", "name: [policy]")).Findings[0].Do; strings.Contains(do, "quote the value") {
		t.Errorf("the next step for a list is %q", do)
	}
}

func TestLintWarnsOfComponents(t *testing.T) {
	const component = "podCondition: {type: policy.example.com/programmed}"
	for name, c := range map[string]struct{ manifest, want string }{
		"a hold of everything without end": {podRule("  namespaceSelector:\n    matchLabels:\n      network-gate: \"on\"\n", "", "  deadlineSeconds: 120\n", "  startHold: true\n"),
			"warning … spec.deadlineSeconds … is absent, with startHold and for all pods"},
		"a gate of two that never opens": {podRule("policy.example.com/programmed", "ContainersReady") + "---\n" + podRule("name: network", "name: other", "  components:", "  startHold: true\n  components:"),
			"warning … PodReadinessRule/other | spec.gate … one rule sets startHold while the other requires ContainersReady"},
		"a file of any pod": {podRule(component, "file: {path: '/run/cni/{namespace}_{name}'}"),
			"warning … spec.components[0].file … identifies the pod by its name only"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, c.manifest), lint.Warning), c.want) })
	}
	for name, manifest := range map[string]string{
		"Ready as long as it is not":      podRule(component, "podCondition: {type: Ready, status: 'False'}"),
		"ContainersReady without a latch": podRule("policy.example.com/programmed", "ContainersReady"),
		"a hold of some pods":             podRule("namespaceSelector:", "podSelector:", "  deadlineSeconds: 120\n", "  startHold: true\n"),
		"the last port":                   podRule(component, "http: {url: 'http://127.0.0.1:65535/{uid}'}"),
		"a file that names the pod":       podRule(component, "file: {path: '/run/cni/{uid}'}"),
		"a file per pod":                  podRule(component, "file: {path: '/run/cni/{name}', contains: '{ip}/32'}"),
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, manifest), lint.Warning)) })
	}
}

func TestLintInformsAboutPodRules(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"all pods":       {podRule("  namespaceSelector:\n    matchLabels:\n      network-gate: \"on\"\n", ""), "info … spec … selects the pods of all namespaces except kube-system and readygate-system"},
		"no deadline":    {podRule("  deadlineSeconds: 120\n", ""), "info … spec.deadlineSeconds … is absent"},
		"a gate of two":  {podRule() + "---\n" + podRule("name: network", "name: other"), "info … PodReadinessRule/other | spec.gate … is also the gate of rule network"},
		"generated name": {podRule("name: network", "generateName: net-"), "info … metadata.generateName … use kubectl create"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, c.manifest), lint.Info), c.want) })
	}
}
