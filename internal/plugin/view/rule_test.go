package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

func TestStandingOfARule(t *testing.T) {
	for name, c := range map[string]struct {
		rules []*v1alpha1.NodeReadinessRule
		want  []string
	}{
		"enforced":   {rules(rule("a")), []string{"a Enforced"}},
		"unobserved": {rules(rule("a", unobserved)), []string{"a Unobserved"}},
		"changed since": {rules(rule("a", func(r *v1alpha1.NodeReadinessRule) { r.Generation = 2 })),
			[]string{"a Unobserved"}},
		"dry run":  {rules(rule("a", dryRun)), []string{"a DryRun"}},
		"deleted":  {rules(rule("a", deleting)), []string{"a Deleting"}},
		"conflict": {rules(rule("a"), rule("b", sameTaintAs("a"), younger, unobserved)), []string{"a Enforced", "b Conflict"}},
		"refused": {rules(rule("a", func(r *v1alpha1.NodeReadinessRule) {
			r.Status.Conditions[1] = metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWriteRefused}
		})), []string{"a WriteRefused"}},
		"the manager waits":   {rules(rule("a", soleController(v1alpha1.ReasonWaitingForLease))), []string{"a WaitingForLease"}},
		"another lease lives": {rules(rule("a", soleController(v1alpha1.ReasonOtherLease))), []string{"a Enforced in namespace other"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, row := range view.NewBook(c.rules).Rules(nil) {
				got = append(got, strings.TrimSpace(row.Name+" "+row.Standing+" "+row.Others))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// soleController sets the condition SoleController to False.
func soleController(reason string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionSoleController, Status: metav1.ConditionFalse, Reason: reason, Message: "in namespace other",
		})
	}
}

func genNode(t *rapid.T, name string) *corev1.Node {
	n := worker(name, labelled(rapid.SampledFrom([]string{"worker", "other"}).Draw(t, "role")))
	for _, ruleName := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, "reports "+ruleName) {
			says(ruleName, rapid.SampledFrom([]corev1.ConditionStatus{True, False, Unknown}).Draw(t, "status"))(n)
		}
		switch rapid.IntRange(0, 4).Draw(t, "hold "+ruleName) {
		case 1:
			heldBy(ruleName, rapid.SampledFrom([]noderule.Origin{noderule.OriginAdded, noderule.OriginAdopted, noderule.OriginCreated, noderule.OriginLabelled}).Draw(t, "origin"))(n)
		case 2:
			completed(ruleName)(n)
		case 3:
			tainted("readiness.k8s.io/"+ruleName, corev1.TaintEffectNoSchedule)(n)
		}
	}
	return n
}

func genRules(t *rapid.T) []*v1alpha1.NodeReadinessRule {
	var all []*v1alpha1.NodeReadinessRule
	for _, name := range []string{"a", "b", "c"} {
		var options []ruleOption
		for what, option := range map[string]ruleOption{"bootstrap": bootstrapOnly, "deleting": deleting, "dry run": dryRun, "rival": sameTaintAs("a"), "younger": younger} {
			if rapid.IntRange(0, 3).Draw(t, name+" "+what) == 3 {
				options = append(options, option)
			}
		}
		all = append(all, rule(name, options...))
	}
	return all
}

// The manager counts with noderule.Summarize. Rows and tallies must give the same numbers, in whatever order rows are
// added and removed.
func TestTalliesAgreeWithTheCore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := genRules(t)
		book, tally := view.NewBook(all), view.Tally{}
		var nodes []*noderule.Node
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			was, is := genNode(t, fmt.Sprint("n", i)), genNode(t, fmt.Sprint("n", i))
			tally.Add(book.Node(was, noon))
			tally.Remove(book.Node(was, noon))
			tally.Add(book.Node(is, noon))
			nodes = append(nodes, noderule.NodeOf(is))
		}
		compiled := noderule.NewRulebook(all)
		for i, row := range book.Rules(tally) {
			core := noderule.Summarize(compiled.Rules()[i], slices.Values(nodes), noon, 0)
			if row.Count.Selected != core.Selected {
				t.Errorf("rule %s: %d selected, the core says %d", row.Name, row.Count.Selected, core.Selected)
			}
			if row.Standing != v1alpha1.ReasonDryRun && row.Count.Unsettled != core.Unsettled {
				t.Errorf("rule %s: %d unsettled, the core says %d", row.Name, row.Count.Unsettled, core.Unsettled)
			}
			if core.Unsettled == 0 && row.Count.Held != core.Holding {
				t.Errorf("rule %s: %d held, the core says %d", row.Name, row.Count.Held, core.Holding)
			}
			for conditionType, n := range core.Blocked {
				if row.Standing != v1alpha1.ReasonDryRun && row.Count.Blocked[conditionType] != n {
					t.Errorf("rule %s: %d blocked by %s, the core says %d", row.Name, row.Count.Blocked[conditionType], conditionType, n)
				}
			}
		}
	})
}

func TestSimulate(t *testing.T) {
	effects := func(s view.Simulation) string {
		var all []string
		for _, e := range s.Effects {
			text := fmt.Sprint(e.Node, " ", e.Change, " for ", e.Rule)
			if e.Evicts {
				text += ", evicts"
			}
			all = append(all, text)
		}
		for _, row := range s.Rules {
			all = append(all, fmt.Sprintf("%s: %d selected, %d held", row.Name, row.Count.Selected, row.Count.Held))
		}
		return strings.Join(all, "; ")
	}
	ready, unready := worker("ready", says("a", True)), worker("unready")
	for name, c := range map[string]struct {
		rules, candidates []*v1alpha1.NodeReadinessRule
		nodes             []*corev1.Node
		want              string
		replaced          []string
	}{
		"a new rule":                   {nil, rules(rule("a")), []*corev1.Node{unready, ready}, "unready Added for a; a: 2 selected, 1 held", nil},
		"a rule that previews":         {nil, rules(rule("a", dryRun)), []*corev1.Node{unready}, "unready Added for a; a: 1 selected, 1 held", nil},
		"a rule that is there":         {rules(rule("a", dryRun)), rules(rule("a")), []*corev1.Node{unready}, "unready Added for a; a: 1 selected, 1 held", nil},
		"what would happen anyway":     {rules(rule("b")), rules(rule("a")), []*corev1.Node{ready}, "a: 1 selected, 0 held", nil},
		"a change that cannot be made": {rules(rule("a", bootstrapOnly)), rules(rule("a")), []*corev1.Node{worker("w", completed("a"))}, "w Added for a; a: 1 selected, 1 held", []string{"a"}},
		"another taint":                {rules(rule("a")), rules(rule("a", sameTaintAs("other"))), []*corev1.Node{worker("w", heldBy("a", noderule.OriginAdded))}, "w Added for a; w Removed for a; a: 1 selected, 1 held", []string{"a"}},
		"eviction":                     {nil, rules(rule("a", effect(corev1.TaintEffectNoExecute))), []*corev1.Node{unready}, "unready Added for a, evicts; a: 1 selected, 1 held", nil},
		"a rule that would lose":       {rules(rule("b", sameTaintAs("a"))), rules(rule("a", younger)), []*corev1.Node{worker("w", says("b", True))}, "a: 0 selected, 0 held", nil},
		"records of unknown rules":     {nil, rules(rule("a")), []*corev1.Node{worker("w", says("a", True), heldBy("gone", noderule.OriginAdded))}, "a: 1 selected, 0 held", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := effects(view.Simulate(c.rules, c.candidates, c.replaced, c.nodes, noon)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A rule whose status is Enforced is shown as Progressing while nodes still have to change.
func TestTheStandingOfARuleIsThatOfItsNodes(t *testing.T) {
	book := view.NewBook(rules(rule("a")))
	for want, node := range map[string]*corev1.Node{v1alpha1.ReasonProgressing: worker("w"), v1alpha1.ReasonEnforced: worker("w", says("a", True))} {
		tally := view.Tally{}
		tally.Add(book.Node(node, noon))
		if row := book.Rules(tally)[0]; row.Standing != want {
			t.Errorf("%s: %s", row.Standing, row.Message)
		}
	}
}

func TestARuleThatIsNotThereYetIsSimulated(t *testing.T) {
	for _, row := range view.Simulate(rules(rule("a")), rules(rule("a"), rule("c")), nil, nil, noon).Rules {
		if row.Name == "c" && row.Standing != view.Simulated {
			t.Errorf("%s is %s", row.Name, row.Standing)
		}
	}
}
