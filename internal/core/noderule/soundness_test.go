package noderule_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/readygate/readygate/internal/core/noderule"
)

// A change that concerns no rule is never evaluated: if it required a plan, the node would stay wrong until its next
// relevant change.
func TestIrrelevantChangeLeavesNothingToPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		before := book.Plan(n, noon).Apply(n)
		after := genChange(t, before)
		if book.Concerns(before, after) {
			return
		}
		if plan := book.Plan(after, noon); !plan.Empty() {
			t.Fatalf("Concerns is false, but the plan is %+v", plan)
		}
	})
}

// A rule that is not concerned is not counted again: its numbers must not have changed, on
// whatever node, settled or not.
func TestIrrelevantChangeDoesNotChangeTheSummary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, before := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		after := genChange(t, before)
		concerned := book.Concerned(before, after)
		for _, r := range book.Rules() {
			if slices.Contains(concerned, r) {
				continue
			}
			was := noderule.Summarize(r, slices.Values([]*noderule.Node{before}), noon, 1)
			is := noderule.Summarize(r, slices.Values([]*noderule.Node{after}), noon, 1)
			if !reflect.DeepEqual(was, is) {
				t.Fatalf("rule %s is not concerned, and yet it counted %+v and counts %+v", r.Name, was, is)
			}
		}
	})
}

// The controller of nodes and the status of rules must agree on when the work is done.
func TestNodesWithNothingToPlanAreSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := noderule.NewRulebook(genRules(t, managedTaints))
		var settled []*noderule.Node
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			n := genNode(t)
			settled = append(settled, book.Plan(n, noon).Apply(n))
		}
		for _, r := range book.Rules() {
			if !r.Active() {
				continue
			}
			if s := noderule.Summarize(r, slices.Values(settled), noon, len(settled)); s.Unsettled > 0 || s.ToAdd > 0 || s.ToRemove > 0 {
				t.Fatalf("rule %s has nothing to do, and counts %+v", r.Name, s)
			}
		}
	})
}

// And the other way round: a node that every rule counts as settled has nothing to plan,
// leftovers of unknown rules aside.
func TestSettledNodesHaveNothingToPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		for _, r := range book.Rules() {
			s := noderule.Summarize(r, slices.Values([]*noderule.Node{n}), noon, 1)
			if !r.Active() || s.Unsettled > 0 {
				return
			}
		}
		for _, c := range book.Plan(n, noon).Changes {
			if book.Rule(c.UID) != nil {
				t.Fatalf("every rule is settled, and yet: %+v", c)
			}
		}
	})
}

// A dry run counts what the rule would do, were it enforced now.
func TestADryRunCountsWhatEnforcingWouldDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := genRule(t, "r0", managedTaints)
		obj.Spec.DryRun, obj.DeletionTimestamp = false, nil
		enforced := noderule.NewRulebook(rules(obj))
		preview := obj.DeepCopy()
		preview.Spec.DryRun = true

		n := genNode(t)
		toAdd, toRemove := 0, 0
		for _, c := range enforced.Plan(n, noon).Changes {
			switch {
			case c.UID == obj.UID && c.Kind == noderule.Added:
				toAdd++
			case c.UID == obj.UID && c.Kind == noderule.Removed:
				toRemove++
			}
		}
		if s := summarize(preview, 1, n); s.ToAdd != toAdd || s.ToRemove != toRemove {
			t.Fatalf("enforcing adds %d and removes %d, the dry run says %d and %d", toAdd, toRemove, s.ToAdd, s.ToRemove)
		}
	})
}
