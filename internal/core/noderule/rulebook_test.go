package noderule_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// standings are the rules oldest first, each with its problem if it has one.
func standings(book *noderule.Rulebook) []string {
	var written []string
	for _, r := range book.Rules() {
		words := r.Name
		if r.Problem != nil {
			words = fmt.Sprintf("%s: %s", r.Name, r.Problem.Reason)
		}
		written = append(written, words)
	}
	return written
}

func TestConflicts(t *testing.T) {
	gateways := selects("role", "gateway")
	inA := selects("zone", "a")
	for name, c := range map[string]struct {
		rules []*v1alpha1.NodeReadinessRule
		want  []string
	}{
		"the older of two rules wins":             {rules(rule("new", younger), rule("old")), []string{"old", "new: Conflict"}},
		"another taint is no conflict":            {rules(rule("a"), rule("b", younger, taintKey("readiness.k8s.io/Other"))), []string{"a", "b"}},
		"another effect is no conflict":           {rules(rule("a"), rule("b", younger, taintEffect(corev1.TaintEffectNoExecute))), []string{"a", "b"}},
		"another value is the same taint":         {rules(rule("a"), rule("b", younger, taintValue("other"))), []string{"a", "b: Conflict"}},
		"other nodes are no conflict":             {rules(rule("a"), rule("b", younger, gateways)), []string{"a", "b"}},
		"nodes that could exist are enough":       {rules(rule("a"), rule("b", younger, inA)), []string{"a", "b: Conflict"}},
		"the mode does not matter":                {rules(rule("a"), rule("b", younger, bootstrapOnly)), []string{"a", "b: Conflict"}},
		"a dry-run rule does not lose":            {rules(rule("a"), rule("b", younger, dryRun)), []string{"a", "b"}},
		"a dry-run rule does not win":             {rules(rule("a", dryRun), rule("b", younger)), []string{"a", "b"}},
		"a rule being deleted does not lose":      {rules(rule("a"), rule("b", younger, deleting)), []string{"a", "b"}},
		"a rule being deleted does not win":       {rules(rule("a", deleting), rule("b", younger)), []string{"a", "b"}},
		"an invalid rule does not win":            {rules(rule("a", taintValue("no good")), rule("b", younger)), []string{"a: Invalid", "b"}},
		"two winners can share a taint":           {rules(rule("a"), rule("b", gateways, younger), rule("c", youngest, inA)), []string{"a", "b", "c: Conflict"}},
		"a rule that selects nothing is no enemy": {rules(rule("a"), rule("b", younger, selectsBy(expression("role", "Exists"), expression("role", "DoesNotExist")))), []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantEqual(t, "rules", standings(noderule.NewRulebook(c.rules)), c.want)
		})
	}
}

// A rule that has lost demands nothing, so it must not keep others from taking part.
func TestRuleInConflictBlocksNoOtherRule(t *testing.T) {
	old := rule("old")
	loser := rule("loser", younger, selectsBy(expression("role", "Exists")))
	third := rule("third", youngest, selects("role", "gateway"))
	book := noderule.NewRulebook(rules(third, loser, old))
	wantEqual(t, "rules", standings(book), []string{"old", "loser: Conflict", "third"})
}

func TestRulesOfTheSameAgeAreOrderedByUID(t *testing.T) {
	a, b := rule("a"), rule("b")
	a.UID, b.UID = "22222222-0000-4000-8000-000000000000", "11111111-0000-4000-8000-000000000000"
	for _, given := range [][]*v1alpha1.NodeReadinessRule{{a, b}, {b, a}} {
		wantEqual(t, "rules", standings(noderule.NewRulebook(given)), []string{"b", "a: Conflict"})
	}
}

func TestConflictMessageNamesTheOlderRule(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("cni"), rule("copy", younger)))
	message := book.Rule(uidOf("copy")).Problem.Message
	for _, part := range []string{`"cni"`, holdRecord} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not name %s", message, part)
		}
	}
}

func TestConflictEndsWhenTheOlderRuleIsDeleted(t *testing.T) {
	loser := rule("loser", younger)
	wantEqual(t, "with the winner", standings(noderule.NewRulebook(rules(rule("winner"), loser))), []string{"winner", "loser: Conflict"})
	wantEqual(t, "while it is deleted", standings(noderule.NewRulebook(rules(rule("winner", deleting), loser))), []string{"winner", "loser"})
	wantEqual(t, "without it", standings(noderule.NewRulebook(rules(loser))), []string{"loser"})
}

func TestRulebookLooksUpByUID(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("a"), rule("b")))
	if got := book.Rule(uidOf("b")); got == nil || got.Name != "b" {
		t.Errorf("got %v, want rule b", got)
	}
	if got := book.Rule(uidOf("c")); got != nil {
		t.Errorf("got %v for a rule that does not exist", got)
	}
}

func TestVerdictsAreOfAllRulesOldestFirst(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("c", youngest, deleting), rule("b", younger), rule("a")))
	var got []string
	for _, v := range book.Evaluate(worker(reports("NetworkReady", True)), noon).Verdicts {
		got = append(got, v.Rule.Name+" "+string(v.State))
	}
	wantEqual(t, "verdicts", got, []string{"a Released", "b NotSelected", "c NotSelected"})
}
