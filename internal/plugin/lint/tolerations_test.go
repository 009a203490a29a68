package lint_test

import (
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// A toleration that the API server adds to a DaemonSet is not missing in its file.
func TestAddedTolerationsAreConsidered(t *testing.T) {
	const reporter = "\n---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: it, namespace: agents, labels: {component: network}}\n" +
		`spec: {template: {spec: {containers: [{name: c, image: "x:1", env: [{name: CONDITION_TYPE, value: example.com/NetworkReady}]}]}}}` + "\n"
	const space = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: agents, labels: {team: a}}\n"
	const stuck = "warning … does not tolerate its taint"
	for name, c := range map[string]struct {
		tolerations string
		want        []string
	}{
		"by its label":                 {"{daemonSetSelector: {matchLabels: {component: network}}}", nil},
		"by another label":             {"{daemonSetSelector: {matchLabels: {component: disk}}}", []string{stuck}},
		"by an expression":             {"{daemonSetSelector: {matchExpressions: [{key: component, operator: In, values: [network]}]}}", nil},
		"by its namespace":             {"{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: agents}}}", nil},
		"by its namespace's label":     {"{namespaceSelector: {matchLabels: {team: a}}}", nil},
		"in another namespace":         {"{daemonSetSelector: {matchLabels: {component: network}}, namespaceSelector: {matchLabels: {team: b}}}", []string{stuck}},
		"in a rule that only previews": {"{daemonSetSelector: {matchLabels: {component: network}}}\n  dryRun: true", []string{stuck}},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := rule("spec:", "spec:\n  tolerations: "+c.tolerations) + reporter + space
			expect(t, lines(check(t, manifest), lint.Warning), c.want...)
		})
	}
}
