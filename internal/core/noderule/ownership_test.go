package noderule_test

import (
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

func TestPlanAfterRelabelling(t *testing.T) {
	elsewhere := label("role", "gateway")
	checkPlans(t, map[string]planCase{
		"a node that is no longer selected loses taint and record": {rules: rules(rule("net")),
			node: node(elsewhere, tainted(hold), owned("net", holdRecord)), changes: []string{"Removed net"}},
		"an adopted taint goes like one that we put there": {rules: rules(rule("net")),
			node: node(elsewhere, tainted(hold), annotated(holdKey("net"), `{"rule":"net","taint":"`+holdRecord+`","origin":"adopted"}`)), changes: []string{"Removed net"}},
		"a taint that no rule ever owned is left alone": untouched(node(elsewhere, tainted(hold)), rule("net")),
		"a record that cannot be read still says who owns the taint": {rules: rules(rule("net")),
			node: node(elsewhere, tainted(hold), annotated(holdKey("net"), "}garbage")), changes: []string{"Removed net"}},
		"a record without its taint goes alone": {rules: rules(rule("net")), node: node(elsewhere, owned("net", holdRecord))},
		"a completion outlives relabelling":     untouched(node(elsewhere, completed("boot")), rule("boot", bootstrapOnly)),
	})
}

// Two rules may share a taint on nodes that cannot be both: when a node changes sides
// the taint must stay, because a gap is enough for a pod to be scheduled.
func TestPlanHandsTaintsOver(t *testing.T) {
	workers, gateways := rule("workers"), rule("gateways", younger, selects("role", "gateway"))
	fromYounger := worker(tainted("example.com/x:NoSchedule", hold, "example.com/y:NoSchedule"), owned("gateways", holdRecord))
	fromOlder := node(label("role", "gateway"), tainted(hold), owned("workers", holdRecord))
	checkPlans(t, map[string]planCase{
		"to an older rule": {rules: rules(workers, gateways), node: fromYounger, taints: taintStrings(fromYounger.Taints),
			notes: []string{"workers holds (adopted)"}, changes: []string{"Adopted workers"}},
		"to a younger rule": {rules: rules(workers, gateways), node: fromOlder, taints: []string{hold},
			notes: []string{"gateways holds (adopted)"}, changes: []string{"Adopted gateways"}},
		"to the successor of a deleted rule": {rules: rules(rule("old", deleting), rule("new", younger)),
			node: worker(tainted(hold), owned("old", holdRecord)), taints: []string{hold},
			notes: []string{"new holds (adopted)"}, changes: []string{"Adopted new"}},
		"to the successor of a rule that is gone": {rules: rules(rule("new")),
			node: worker(tainted(hold), owned("gone", holdRecord)), taints: []string{hold},
			notes: []string{"new holds (adopted)"}, changes: []string{"Adopted new"}},
		"not to a rule that releases the node": {rules: rules(workers, gateways),
			node:    worker(reports("NetworkReady", True), tainted(hold), owned("gateways", holdRecord)),
			changes: []string{"Removed workers"}},
		"not to a rule that only previews": {rules: rules(rule("old", deleting), rule("new", younger, dryRun)),
			node: worker(tainted(hold), owned("old", holdRecord)), changes: []string{"Removed old"}},
	})
}

func TestPlanForADeletedRule(t *testing.T) {
	gone := rule("boot", bootstrapOnly, deleting)
	checkPlans(t, map[string]planCase{
		"taint and record go": {rules: rules(rule("net", deleting)), node: worker(tainted(hold), owned("net", holdRecord)),
			changes: []string{"Removed net"}},
		"its memory goes too": {rules: rules(gone), node: worker(completed("boot"))},
		"taint, record and memory go together": {rules: rules(gone), node: worker(tainted(hold), owned("boot", holdRecord), completed("boot")),
			changes: []string{"Removed boot"}},
		"also on a node that it does not select": {rules: rules(gone), node: node(tainted(hold), owned("boot", holdRecord), completed("boot")),
			changes: []string{"Removed boot"}},
		"a taint that it never owned stays":                       untouched(worker(tainted(hold)), rule("net", deleting)),
		"deleting a dry-run rule leaves taints that it never put": untouched(worker(tainted(hold)), rule("net", dryRun, deleting)),
		"deleting a dry-run rule takes what it put before it was one": {rules: rules(rule("net", dryRun, deleting)),
			node: worker(tainted(hold), owned("net", holdRecord)), changes: []string{"Removed net"}},
		"a memory of the older form is not ours to remove": untouched(worker(annotated(v1alpha1.CompletedPrefix+"boot", "x")), gone),
		"memories of other rules stay": untouched(worker(completed("other")),
			gone, rule("other", bootstrapOnly, selects("role", "gateway"))),
		"an invalid rule can be deleted too": {rules: rules(rule("net", selectsBy(expression("role", "Near")), deleting)),
			node: worker(tainted(hold), owned("net", holdRecord)), changes: []string{"Removed net"}},
	})
}

func TestADryRunTouchesNothing(t *testing.T) {
	for name, r := range map[string]*v1alpha1.NodeReadinessRule{
		"continuous": rule("net", dryRun), "bootstrap-only": rule("net", dryRun, bootstrapOnly),
	} {
		met := reports("NetworkReady", True)
		checkPlans(t, map[string]planCase{
			name + ": it adds nothing":                         untouched(worker(), r),
			name + ": it adopts nothing":                       untouched(worker(tainted(hold)), r),
			name + ": it removes nothing":                      untouched(worker(met, tainted(hold)), r),
			name + ": it remembers nothing":                    untouched(worker(met), r),
			name + ": what it owned before stays":              untouched(worker(met, tainted(hold), owned("net", holdRecord)), r),
			name + ": what it owned on an unselected node too": untouched(node(tainted(hold), owned("net", holdRecord)), r),
			name + ": what it remembered before stays":         untouched(worker(completed("net")), r),
		})
	}
}

func TestPlanForRulesInConflict(t *testing.T) {
	winner := rule("winner")
	loser := rule("loser", younger, requires(requirement("StorageReady", True)))
	workersInA := rule("loser", younger, selectsBy(expression("zone", "In", "a")))
	checkPlans(t, map[string]planCase{
		"only the older one holds": {rules: rules(winner, loser), node: worker(),
			taints: []string{hold}, notes: []string{"winner holds (added)"}, changes: []string{"Added winner"}},
		"the loser does not hold what the winner releases": untouched(worker(reports("NetworkReady", True)), winner, loser),
		"the loser does not release what the winner holds": untouched(
			worker(reports("StorageReady", True), tainted(hold), owned("winner", holdRecord)), winner, loser),
		"the loser hands over what it had": {rules: rules(winner, loser), node: worker(tainted(hold), owned("loser", holdRecord)),
			taints: []string{hold}, notes: []string{"winner holds (adopted)"}, changes: []string{"Adopted winner"}},
		"the loser lets go what it had where the winner does not speak": {rules: rules(winner, workersInA),
			node: node(label("zone", "a"), tainted(hold), owned("loser", holdRecord)), changes: []string{"Removed loser"}},
		"the loser does nothing where the winner does not speak": untouched(node(label("zone", "a")), winner, workersInA),
		"the loser keeps its memory": untouched(worker(reports("NetworkReady", True), completed("loser")),
			winner, rule("loser", younger, bootstrapOnly)),
	})
}

func TestPlanForAnInvalidRule(t *testing.T) {
	badValue := rule("net")
	badValue.Spec.Taint.Value = "not valid"
	checkPlans(t, map[string]planCase{
		"it holds nothing":         untouched(worker(), badValue),
		"it releases nothing":      untouched(worker(reports("NetworkReady", True), tainted(hold)), badValue),
		"it lets go what it owned": {rules: rules(badValue), node: worker(tainted(hold), owned("net", holdRecord)), changes: []string{"Removed net"}},
	})
}

// A rule stored under another CRD may name any taint. It is never enforced, and a forged
// record must not turn it into a way to take foreign taints off a node.
func TestAnInvalidRuleDoesNotRemoveTheForeignTaintItNames(t *testing.T) {
	n := worker(tainted(notReady+":NoSchedule"), owned("bad", notReady+":NoSchedule"))
	for name, option := range map[string]ruleOption{"not accepted": func(*v1alpha1.NodeReadinessRule) {}, "being deleted": deleting} {
		t.Run(name, func(t *testing.T) {
			bad := rule("bad", taintKey(notReady), option)
			applied := noderule.NewRulebook(rules(bad)).Plan(n, noon).Apply(n)
			wantEqual(t, "taints", taintStrings(applied.Taints), []string{notReady + ":NoSchedule"})
		})
	}
}
