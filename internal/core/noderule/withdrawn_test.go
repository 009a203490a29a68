package noderule_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Withdrawn rules require nothing, whatever their mode and the node's
// conditions; of their annotations, only completion records stay.
func TestWithdrawnRulesRemoveTheirHolds(t *testing.T) {
	unmet := reports("NetworkReady", False)
	for name, c := range map[string]struct {
		rule   *v1alpha1.NodeReadinessRule
		node   *noderule.Node
		taints []string
		notes  []string
	}{
		"a hold goes, though the requirement is not met": {rule: rule("net"), node: worker(unmet, tainted(hold), owned("net", holdRecord))},
		"no taint comes":                         {rule: rule("net"), node: worker(unmet)},
		"a taint that was never owned stays":     {rule: rule("net"), node: worker(unmet, tainted(hold)), taints: []string{hold}},
		"what a preview froze goes":              {rule: rule("net", dryRun), node: worker(unmet, tainted(hold), owned("net", holdRecord))},
		"no completion is written":               {rule: rule("net", bootstrapOnly), node: worker(reports("NetworkReady", True))},
		"a completion stays":                     {rule: rule("net", bootstrapOnly), node: worker(completed("net")), notes: []string{"net completed"}},
		"that of a rule that is deleted goes":    {rule: rule("net", bootstrapOnly, deleting), node: worker(completed("net"), tainted(hold), owned("net", holdRecord))},
		"what rules left that are gone is swept": {rule: rule("net"), node: worker(tainted(hold), owned("gone", holdRecord), completed("gone"))},
	} {
		t.Run(name, func(t *testing.T) {
			book := noderule.NewRulebook(rules(c.rule)).Withdrawn()
			book.Listed = listedOn(c.node)
			applied := book.Plan(c.node, noon).Apply(c.node)
			wantEqual(t, "taints", taintStrings(applied.Taints), c.taints)
			wantEqual(t, "annotations", notes(applied, "net"), c.notes)
		})
	}
}

// Whatever the rules and the node: after a withdrawal no ownership record is left but those that no rule
// wrote, nothing was put on, nothing foreign is lost, and there is nothing more to do.
func TestAWithdrawalLeavesNoHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)).Withdrawn(), genNode(t)
		book.Listed = listedOn(n)
		plan := book.Plan(n, noon)
		applied := plan.Apply(n)
		checkForeignSurvive(t, plan, n)
		if len(plan.Set) > 0 || len(applied.Taints) > len(n.Taints) {
			t.Fatalf("something was put on: %+v", plan)
		}
		if left := slices.Sorted(slices.Values(holdKeys(applied))); !slices.Equal(left, plan.Unlisted) {
			t.Fatalf("records are left: %v, of which unlisted: %v", left, plan.Unlisted)
		}
		if again := book.Plan(applied, noon); !again.Empty() {
			t.Fatalf("planned %+v, then %+v", plan, again)
		}
	})
}

// A node that is disowned keeps every taint and completion, and loses every record of a hold.
func TestADisownedNodeLosesRecordsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := genNode(t)
		plan := noderule.Disown(n)
		applied := plan.Apply(n)
		if !slices.Equal(taintStrings(applied.Taints), taintStrings(n.Taints)) || plan.TaintsChanged || len(plan.Set) > 0 {
			t.Fatalf("taints are changed: %+v", plan)
		}
		if got, want := len(applied.Annotations), len(n.Annotations)-len(holdKeys(n)); got != want || len(holdKeys(applied)) > 0 {
			t.Fatalf("%d annotations are left of %v: %v", got, n.Annotations, applied.Annotations)
		}
		if len(plan.Remove) > 0 && len(plan.Changes) == 0 {
			t.Fatal("the plan does not say what it does")
		}
	})
}

func holdKeys(n *noderule.Node) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(n.Annotations)), func(key string) bool { return !strings.HasPrefix(key, v1alpha1.HoldPrefix) })
}
