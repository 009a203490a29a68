package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

const configMap = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: kube-system}
data:
  config.yaml: |
    apiVersion: readygate.dev/v1alpha1
    kind: ReporterConfig
    checks:
    - {conditionType: example.com/NetworkReady, tcp: {address: "localhost:1"}}
  other: "no: ["
`

// daemonSet returns a DaemonSet with this pod.
func daemonSet(pod string) string {
	return "\n---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: it, namespace: kube-system}\nspec: {template: {spec: " + pod + "}}\n"
}

func TestAReporterMustTolerateTheTaintOfItsRule(t *testing.T) {
	const variable = `containers: [{name: c, image: "whatever:1", env: [{name: CONDITION_TYPE, value: example.com/NetworkReady}]}]`
	const image = `containers: [{name: c, image: "registry.example.com:5000/readygate/readygate-reporter:v1@sha256:00"}]`
	const command = `containers: [{name: c, image: "mine:1", command: [/bin/readygate-reporter]}]`
	const volumes = `, volumes: [{name: config, configMap: {name: config}}]`
	const stuck = `warning | a.yaml | DaemonSet/it | spec.template.spec.tolerations | reports a condition of rule "network" but does not tolerate its taint readiness.k8s.io/NetworkReady=pending:NoSchedule`
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"by a variable":            {rule() + daemonSet("{"+variable+"}"), []string{stuck}},
		"by a configuration":       {rule() + configMap + daemonSet("{"+image+volumes+"}"), []string{stuck}},
		"by nothing":               {rule() + daemonSet("{"+image+"}"), []string{stuck}},
		"its program":              {rule() + daemonSet("{"+command+"}"), []string{stuck}},
		"as a sidecar":             {rule() + daemonSet("{init"+"Containers: [{name: s, image: x, env: [{name: CONDITION_TYPE, value: example.com/NetworkReady}]}]}"), []string{stuck}},
		"tolerates everything":     {rule() + daemonSet("{"+variable+", tolerations: [{operator: Exists}]}"), nil},
		"tolerates the key":        {rule() + daemonSet("{"+variable+", tolerations: [{key: readiness.k8s.io/NetworkReady, operator: Exists}]}"), nil},
		"tolerates another value":  {rule() + daemonSet("{"+variable+", tolerations: [{key: readiness.k8s.io/NetworkReady, value: other}]}"), []string{stuck}},
		"tolerates another effect": {rule() + daemonSet("{"+variable+", tolerations: [{operator: Exists, effect: NoExecute}]}"), []string{stuck}},
		"tolerates it for a while": {rule("NoSchedule", "NoExecute") + daemonSet("{"+variable+", tolerations: [{operator: Exists, tolerationSeconds: 60}]}"), []string{"warning … does not tolerate its taint"}},
		"no reporter":              {rule() + daemonSet("{containers: [{name: c, image: nginx}]}"), nil},
		"not a pod at all":         {rule() + daemonSet("7"), nil},
		"reports something else": {rule() + daemonSet("{containers: [{name: c, image: x, env: [{name: CONDITION_TYPE, value: example.com/Networkready}]}]}"),
			[]string{"warning | a.yaml | NodeReadinessRule/network | spec.conditions[0].type | no reporter in these files reports example.com/NetworkReady; they report example.com/Networkready"}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, c.manifest), lint.Warning), c.want...) })
	}
}

func TestAReporterMustTolerateTheTaintsOfOtherRulesOnItsNodes(t *testing.T) {
	const reporter = `containers: [{name: c, image: "whatever:1", env: [{name: CONDITION_TYPE, value: example.com/NetworkReady}]}]`
	const storage = `, {name: s, image: "x:1", env: [{name: CONDITION_TYPE, value: example.com/StorageReady}]}]`
	tolerant := daemonSet("{" + reporter + ", tolerations: [{key: readiness.k8s.io/NetworkReady, operator: Exists}]}")
	both := daemonSet("{" + strings.TrimSuffix(reporter, "]") + storage + ", tolerations: [{key: readiness.k8s.io/NetworkReady, operator: Exists}]}")
	all := daemonSet("{" + reporter + ", tolerations: [{operator: Exists}]}")
	provider := strings.ReplaceAll(daemonSet("{containers: [{name: c, image: x, env: [{name: CONDITION_TYPE, value: example.com/StorageReady}]}], tolerations: [{operator: Exists}]}"), "name: it", "name: storage")
	const stuck = `warning | a.yaml | DaemonSet/it | spec.template.spec.tolerations | reports a condition of rule "network" but does not tolerate the taint readiness.k8s.io/StorageReady=pending:NoSchedule of rule "storage", which can hold the same nodes`
	other := func(replace ...string) string {
		return rule() + "---\n" + rule(append([]string{"name: network", "name: storage", "NetworkReady", "StorageReady"}, replace...)...) + provider
	}
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"same nodes":              {other() + tolerant, []string{stuck}},
		"nodes that can be both":  {other("example.com/pool: workers", "example.com/disk: local") + tolerant, []string{stuck}},
		"other nodes":             {other("workers", "others") + tolerant, nil},
		"only previews":           {other("spec:", "spec:\n  dryRun: true") + tolerant, nil},
		"evicts":                  {other("NoSchedule", "NoExecute") + tolerant, []string{"warning … DaemonSet/it … of rule \"storage\""}},
		"only asks":               {other("NoSchedule", "PreferNoSchedule") + tolerant, []string{"warning … is only a preference"}},
		"tolerates everything":    {other() + all, nil},
		"reports for both, so it": {other() + both, []string{`warning … DaemonSet/it … reports a condition of rule "storage" but does not tolerate its taint`}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, c.manifest), lint.Warning), c.want...) })
	}
}

func TestNetworkUnavailableNeedsNoReporter(t *testing.T) {
	network := rule("example.com/NetworkReady", "NetworkUnavailable", `"True"`, `"False"`)
	expect(t, lines(check(t, network), lint.Warning)) // the kubelet does not
	reporter := daemonSet("{containers: [{name: c, image: x, env: [{name: CONDITION_TYPE, value: example.com/Other}]}], tolerations: [{operator: Exists}]}")
	expect(t, lines(check(t, network+reporter), lint.Warning)) // nor does a reporter
}
