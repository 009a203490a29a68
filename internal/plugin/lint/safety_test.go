package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// aged returns a rule whose condition has a maxAge of two minutes.
func aged() string { return rule(`requiredStatus: "True"`, "requiredStatus: \"True\"\n    maxAge: 2m") }

const beating = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: reporter}
spec:
  template:
    spec:
      tolerations: [{operator: Exists}]
      containers:
      - name: reporter
        image: example.com/readygate-reporter:v1
        env: [{name: CONDITION_TYPE, value: example.com/NetworkReady}PERIOD]
`

func TestHeartbeatsFitMaxAge(t *testing.T) {
	for period, want := range map[string][]string{
		"":    {"warning | b.yaml | DaemonSet/reporter |  | writes example.com/NetworkReady every 5m0s, but rule \"network\" has maxAge 2m0s"},
		"61s": {"warning … every 1m1s"},
		"60s": nil,
		"40s": nil,
	} {
		t.Run("period "+period, func(t *testing.T) {
			env := ""
			if period != "" {
				env = ", {name: HEARTBEAT_PERIOD, value: " + period + "}"
			}
			expect(t, lines(check(t, aged(), strings.Replace(beating, "PERIOD", env, 1)), lint.Warning), want...)
		})
	}
	config := strings.NewReplacer("PERIOD", "", "containers:", "volumes: [{name: c, configMap: {name: checks}}]\n      containers:").Replace(beating) +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: checks}\ndata:\n  config.yaml: |\n    kind: ReporterConfig\n    heartbeatPeriod: 30s\n    checks: [{conditionType: example.com/NetworkReady}]\n"
	expect(t, lines(check(t, aged(), config), lint.Warning))
}

func TestLintComputesTheCostOfHeartbeats(t *testing.T) {
	report, err := lint.Check([]lint.Input{{File: "a.yaml", Data: []byte(aged())}}, 5000)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(lines(report, lint.Info), "\n"); !strings.Contains(all, "info | a.yaml | NodeReadinessRule/network | spec.conditions[0].maxAge | needs a heartbeat about every 40s: with 5000 nodes, 125 writes per second") {
		t.Error(all)
	}
}

func TestDependenciesAreChecked(t *testing.T) {
	on := func(name, other string) string {
		return rule("name: network", "name: "+name, "NetworkReady", name, "spec:", "spec:\n  dependsOn: ["+other+"]")
	}
	expect(t, lines(check(t, rule(), on("disk", "network")), lint.Warning))
	expect(t, lines(check(t, rule(), on("disk", "network-typo")), lint.Warning), "warning | b.yaml | NodeReadinessRule/disk | spec.dependsOn … network-typo")
	expect(t, lines(check(t, on("a", "b"), on("b", "a")), lint.Warning), "error | b.yaml | NodeReadinessRule/b | spec.dependsOn … a cycle (b → a → b)")
}

// Conditions that Kubernetes writes have their own heartbeat period.
func TestMaxAgeOfKubernetesConditionsIsAWarning(t *testing.T) {
	of := func(conditionType, age string) string {
		return rule("bootstrap-only", "continuous", "example.com/NetworkReady", conditionType, `requiredStatus: "True"`, "requiredStatus: \"True\"\n    maxAge: "+age)
	}
	expect(t, lines(check(t, of("Ready", "2m")), lint.Warning), "warning | a.yaml | NodeReadinessRule/network | spec.conditions[0].maxAge | the kubelet writes Ready every 5m0s if nothing changes")
	expect(t, lines(check(t, of("Ready", "10m")), lint.Warning))
	expect(t, lines(check(t, of("NetworkUnavailable", "1h")), lint.Warning), "warning … NetworkUnavailable is written once")
}

// The heartbeat period of a third-party component is unknown.
func TestHeartbeatsOfOtherReportersAreNotChecked(t *testing.T) {
	other := strings.NewReplacer("PERIOD", "", "readygate-reporter", "agent").Replace(beating)
	expect(t, lines(check(t, aged(), other), lint.Warning))
}

// Whole numbers are read as the API server reads them.
func TestWholeNumbersAreAccepted(t *testing.T) {
	with := func(fields string) string { return rule("bootstrap-only", "continuous", "spec:", "spec:\n  "+fields) }
	for _, fields := range []string{"maxUnavailable: 2", "maxUnavailable: 0", "maxUnavailable: 10%", "minReadySeconds: 30\n  progressDeadlineSeconds: 600\n  onDeadline: Release"} {
		expect(t, lines(check(t, with(fields)), lint.Warning))
	}
	expect(t, lines(check(t, with("minReadySeconds: 60\n  progressDeadlineSeconds: 60")), lint.Warning),
		"error | a.yaml | NodeReadinessRule/network | spec.progressDeadlineSeconds … must be greater than minReadySeconds")
	expect(t, lines(check(t, with("maxUnavailable: -1")), lint.Warning), "error | a.yaml | NodeReadinessRule/network | spec.maxUnavailable … must be a number of nodes from 0 to 1000000")
}
