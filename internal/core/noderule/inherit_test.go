package noderule_test

import (
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// withFinalizer makes a rule one that a controller of this API has taken care of.
func withFinalizer(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{v1alpha1.Finalizer} }

// Another controller enforced the rule without records, and somebody deleted it before we
// first saw it: its taint goes, as that controller would have seen to.
func TestTaintOfARuleDeletedBeforeTakeoverIsRemoved(t *testing.T) {
	inherited := rule("net", deleting, withFinalizer)
	checkPlans(t, map[string]planCase{
		"its taint goes from the nodes that it selects": {rules: rules(inherited), node: worker(tainted(hold)), changes: []string{"Removed net"}},
		"not from other nodes":                          untouched(node(tainted(hold)), inherited),
		"not if we have seen it":                        untouched(worker(tainted(hold)), rule("net", deleting, withFinalizer, takenOverAt(noon))),
		"not if nobody took care of it":                 untouched(worker(tainted(hold)), rule("net", deleting)),
		"not if it only previewed":                      untouched(worker(tainted(hold)), rule("net", deleting, withFinalizer, dryRun)),
	})
	if s := summarize(inherited, 0, worker(tainted(hold))); s.Carrying != 1 {
		t.Errorf("%d nodes carry its taint, want 1: the finalizer must wait", s.Carrying)
	}
}

// A rule that is done with a node looks away: a taint of the same key that somebody puts
// there later is theirs.
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
