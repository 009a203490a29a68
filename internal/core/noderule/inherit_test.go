package noderule_test

import (
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// withFinalizer makes a rule one that a controller of this API has taken care of.
func withFinalizer(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{v1alpha1.Finalizer} }

// Another controller enforced the rule without records, and a user deleted it before the manager first observed it: the
// manager removes its taint, as the other controller would have.
func TestTaintOfARuleDeletedBeforeTakeoverIsRemoved(t *testing.T) {
	inherited := rule("net", deleting, withFinalizer)
	checkPlans(t, map[string]planCase{
		"its taint goes from the nodes that it selects": {rules: rules(inherited), node: worker(tainted(hold)), changes: []string{"Removed net"}},
		"not from other nodes":                          untouched(node(tainted(hold)), inherited),
		"not if it was taken over":                      untouched(worker(tainted(hold)), rule("net", deleting, withFinalizer, takenOverAt(noon))),
		"not without a finalizer":                       untouched(worker(tainted(hold)), rule("net", deleting)),
		"not if it only previewed":                      untouched(worker(tainted(hold)), rule("net", deleting, withFinalizer, dryRun)),
	})
	if s := summarize(inherited, 0, worker(tainted(hold))); s.Carrying != 1 {
		t.Errorf("%d nodes carry its taint, want 1: the finalizer must wait", s.Carrying)
	}
}

// A rule does not change a node that it has completed: a later taint with the same key belongs to another owner.
func TestACompletedNodeIsLeftAlone(t *testing.T) {
	boot := rule("boot", bootstrapOnly)
	checkPlans(t, map[string]planCase{
		"requirements not met": untouched(worker(completed("boot"), tainted(hold)), boot),
		"requirements met":     untouched(worker(completed("boot"), tainted(hold), reports("NetworkReady", True)), boot),
		"what it still owns goes": {rules: rules(boot), node: worker(completed("boot"), tainted(hold), owned("boot", holdRecord)),
			notes: []string{"boot completed"}, changes: []string{"Removed boot"}},
	})
	if s := summarize(boot, 1, worker(completed("boot"), tainted(hold))); s.Unsettled != 0 || s.ToRemove != 0 {
		t.Errorf("unsettled %d, to remove %d", s.Unsettled, s.ToRemove)
	}
}

func TestDryRunRuleNamesTheRuleItConflictsWith(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("enforced"), rule("preview", younger, dryRun), rule("elsewhere", younger, dryRun, selects("role", "gateway"))))
	for name, want := range map[string]string{"preview": "enforced", "elsewhere": "", "enforced": ""} {
		for _, r := range book.Rules() {
			if got := rivalOf(r); r.Name == name && got != want {
				t.Errorf("rival of %s is %q, want %q", name, got, want)
			}
		}
	}
}

func rivalOf(r *noderule.Rule) string {
	if r.Rival == nil {
		return ""
	}
	return r.Rival.Name
}
