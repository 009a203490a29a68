package readiness_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Records of rules that no longer exist are swept on sight: their rule may have been
// removed by force, without a chance to clean up.
func TestPlanSweepsRecordsOfUnknownRules(t *testing.T) {
	startup := "startup-taint.cluster-autoscaler.kubernetes.io/cni"
	checkPlans(t, map[string]planCase{
		"taint and record go": {node: worker(tainted(hold), owned("gone", holdRecord)), changes: []string{"Removed gone"}},
		"both managed prefixes are swept": {node: worker(tainted(startup+":NoExecute"), owned("gone", startup+":NoExecute")),
			changes: []string{"Removed gone " + startup + ":NoExecute"}},
		"a record without its taint goes": {node: worker(tainted("example.com/x:NoSchedule"), owned("gone", holdRecord)),
			taints: []string{"example.com/x:NoSchedule"}},
		"only the taint of that effect goes": {node: worker(tainted(networkTaint+":NoExecute", hold), owned("gone", holdRecord)),
			taints: []string{networkTaint + ":NoExecute"}, changes: []string{"Removed gone"}},
		"a taint of a rule that holds the node stays": {rules: rules(rule("net")),
			node:   worker(tainted(hold), owned("net", holdRecord), owned("gone", holdRecord)),
			taints: []string{hold}, notes: []string{"net holds (added)"}},
		"completions go": {node: worker(completed("gone"))},
		"completions of known rules stay": untouched(worker(completed("boot"), reports("NetworkReady", True)),
			rule("boot", bootstrapOnly)),
		"completions of the older form stay":          untouched(worker(annotated(v1alpha1.CompletedPrefix+"gone", `{"rule-name":"gone"}`))),
		"what only looks like a completion stays":     untouched(worker(annotated(completedKey("gone"), "true"))),
		"a completion that names no rule stays":       untouched(worker(annotated(completedKey("gone"), `{"rule-name":""}`))),
		"an almost-UID is a name, and stays":          untouched(worker(annotated(strings.Replace(completedKey("gone"), "-0000-", "-000g-", 1), `{"rule-name":"gone"}`))),
		"a taint with our prefix and no record stays": untouched(worker(tainted(hold))),
		"several leftovers go in one plan": {node: worker(tainted(hold, startup+":NoSchedule"),
			owned("a", holdRecord), owned("c", startup+":NoSchedule"), completed("a")),
			changes: []string{"Removed a", "Removed c " + startup + ":NoSchedule"}},
	})
}

// Anybody who may write a node can forge a record. The worst that it may do is to take off a
// taint that rules may manage at all.
func TestForgedRecordsDoNotRemoveForeignTaints(t *testing.T) {
	foreign := []string{notReady + ":NoExecute", "node.kubernetes.io/unschedulable:NoSchedule", "my.readiness.k8s.io/x:NoSchedule"}
	for _, taint := range foreign {
		checkPlans(t, map[string]planCase{
			"of an unknown rule, " + taint: {node: worker(tainted(foreign...), owned("forged", taint)), taints: foreign},
			"of a known rule, " + taint: {rules: rules(rule("net")),
				node:   worker(reports("NetworkReady", True), tainted(foreign...), owned("net", taint)),
				taints: foreign},
			"of a known rule that does not select the node, " + taint: {rules: rules(rule("net")),
				node: node(tainted(foreign...), owned("net", taint)), taints: foreign},
			"of a deleted rule, " + taint: {rules: rules(rule("net", deleting)),
				node: worker(tainted(foreign...), owned("net", taint)), taints: foreign},
		})
	}
	garbage := map[string]string{
		"no JSON":                   "}{",
		"nothing":                   "",
		"null":                      "null",
		"a list":                    `["` + notReady + `:NoExecute"]`,
		"a taint of another type":   `{"rule":"x","taint":{"key":"` + notReady + `"}}`,
		"a taint without effect":    `{"rule":"x","taint":"` + notReady + `"}`,
		"a prefix in the wrong end": `{"rule":"x","taint":"` + notReady + `:readiness.k8s.io/"}`,
		"a prefix without its end":  `{"rule":"x","taint":"readiness.k8s.io:NoSchedule"}`,
	}
	for name, value := range garbage {
		t.Run(name, func(t *testing.T) {
			planCase{node: worker(tainted(foreign...), annotated(holdKey("forged"), value)), taints: foreign}.check(t)
		})
	}
}

func TestARecordWithoutARuleIsSwept(t *testing.T) {
	planCase{node: worker(annotated(v1alpha1.HoldPrefix, "x"), annotated(v1alpha1.HoldPrefix+"not/a uid", "x"))}.check(t)
}
