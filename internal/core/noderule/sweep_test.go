package noderule_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
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

// Any client that may write a node can forge a record. It makes the manager remove no taint, and the
// record stays, unless the rule of that UID is done with the node.
func TestForgedRecordsDoNotRemoveForeignTaints(t *testing.T) {
	foreign := []string{notReady + ":NoExecute", "node.kubernetes.io/unschedulable:NoSchedule", "my.readiness.k8s.io/x:NoSchedule"}
	for _, taint := range foreign {
		checkPlans(t, map[string]planCase{
			"of an unknown rule, " + taint:                            untouched(worker(tainted(foreign...), owned("forged", taint))),
			"of a known rule, " + taint:                               untouched(worker(reports("NetworkReady", True), tainted(foreign...), owned("net", taint)), rule("net")),
			"of a known rule that does not select the node, " + taint: untouched(node(tainted(foreign...), owned("net", taint)), rule("net")),
			"of a deleted rule, " + taint:                             untouched(worker(tainted(foreign...), owned("net", taint)), rule("net", deleting)),
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
			untouched(worker(tainted(foreign...), annotated(holdKey("forged"), value))).check(t)
		})
	}
}

// A record is swept only if the list of rule taints has its rule with its taint. Others are reported.
func TestOnlyListedRecordsAreSwept(t *testing.T) {
	const mine = "readiness.k8s.io/by-a-person:NoSchedule"
	pair := func(name, taint string) noderule.RuleTaints {
		id, _ := noderule.ParseTaint(taint)
		return noderule.RuleTaints{uidOf(name): id}
	}
	for name, c := range map[string]struct {
		rules    []*v1alpha1.NodeReadinessRule
		listed   noderule.RuleTaints
		node     *noderule.Node
		taints   []string
		unlisted []string
	}{
		"rule and taint are listed":         {listed: pair("gone", holdRecord), node: worker(tainted(hold), owned("gone", holdRecord))},
		"no list":                           {node: worker(tainted(mine), owned("gone", mine)), taints: []string{mine}, unlisted: []string{holdKey("gone")}},
		"an invented rule":                  {listed: pair("other", mine), node: worker(tainted(mine), owned("gone", mine)), taints: []string{mine}, unlisted: []string{holdKey("gone")}},
		"a listed rule with another taint":  {listed: pair("gone", holdRecord), node: worker(tainted(mine), owned("gone", mine)), taints: []string{mine}, unlisted: []string{holdKey("gone")}},
		"a record that cannot be read":      {listed: pair("gone", holdRecord), node: worker(tainted(hold), annotated(holdKey("gone"), "}")), taints: []string{hold}, unlisted: []string{holdKey("gone")}},
		"a rule that has another taint":     {rules: rules(rule("net")), listed: pair("net", holdRecord), node: node(tainted(mine, hold), owned("net", mine)), taints: []string{mine, hold}, unlisted: []string{holdKey("net")}},
		"a deleted rule with another taint": {rules: rules(rule("net", deleting)), listed: pair("net", holdRecord), node: node(tainted(mine, hold), owned("net", mine)), taints: []string{mine, hold}, unlisted: []string{holdKey("net")}},
		"a rule that holds the node writes its own record": {rules: rules(rule("net")), listed: pair("net", holdRecord),
			node: worker(tainted(mine), owned("net", mine)), taints: []string{mine, hold}},
		"records without a rule": {node: worker(annotated(v1alpha1.HoldPrefix, "x"), annotated(v1alpha1.HoldPrefix+"not/a uid", "x")),
			unlisted: []string{v1alpha1.HoldPrefix, v1alpha1.HoldPrefix + "not/a uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			book := noderule.NewRulebook(c.rules)
			book.Listed = c.listed
			plan := book.Plan(c.node, noon)
			applied := plan.Apply(c.node)
			wantEqual(t, "taints", taintStrings(applied.Taints), c.taints)
			wantEqual(t, "unlisted", plan.Unlisted, c.unlisted)
			for _, key := range c.unlisted {
				if applied.Annotations[key] != c.node.Annotations[key] {
					t.Errorf("record %s was changed", key)
				}
			}
			if len(c.rules) > 0 && c.unlisted != nil && noderule.Carries(book.Rules()[0], c.node) {
				t.Error("the rule counts the forged record as its own: its finalizer would wait forever")
			}
		})
	}
}
