package noderule_test

import (
	"iter"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// The universe of the search: two labels, each absent, empty, with one of two values that
// selectors name, or with one that none of them names and that stands for all others.
var (
	overlapKeys   = []string{"role", "zone"}
	overlapValues = []v1alpha1.LabelValue{"", "a", "b"}
	labelChoices  = []string{"absent", "", "a", "b", "unnamed"}
)

// everyNode goes through all label sets of the universe.
func everyNode() iter.Seq[labels.Set] {
	return func(yield func(labels.Set) bool) {
		for _, role := range labelChoices {
			for _, zone := range labelChoices {
				if !yield(labelled(role, zone)) {
					return
				}
			}
		}
	}
}

func labelled(role, zone string) labels.Set {
	set := labels.Set{}
	for i, value := range []string{role, zone} {
		if value != "absent" {
			set[overlapKeys[i]] = value
		}
	}
	return set
}

// someNodeMatches is the answer by exhaustive search.
func someNodeMatches(selectors ...labels.Selector) bool {
	for set := range everyNode() {
		all := true
		for _, s := range selectors {
			all = all && s.Matches(set)
		}
		if all {
			return true
		}
	}
	return false
}

func expressionGen() *rapid.Generator[v1alpha1.NodeSelectorRequirement] {
	return rapid.Custom(func(t *rapid.T) v1alpha1.NodeSelectorRequirement {
		key := rapid.SampledFrom(overlapKeys).Draw(t, "key")
		operator := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
		if operator == "Exists" || operator == "DoesNotExist" {
			return expression(key, operator)
		}
		values := rapid.SliceOfNDistinct(rapid.SampledFrom(overlapValues), 1, 3, rapid.ID).Draw(t, "values")
		return expression(key, operator, values...)
	})
}

func expressionsGen() *rapid.Generator[[]v1alpha1.NodeSelectorRequirement] {
	return rapid.SliceOfN(expressionGen(), 1, 4)
}

func selectorOf(t *rapid.T, expressions []v1alpha1.NodeSelectorRequirement) labels.Selector {
	operators := map[string]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	}
	selector := labels.NewSelector()
	for _, e := range expressions {
		var values []string
		for _, v := range e.Values {
			values = append(values, string(v))
		}
		r, err := labels.NewRequirement(e.Key, operators[string(e.Operator)], values)
		if err != nil {
			t.Fatalf("a selector of the generator: %v", err)
		}
		selector = selector.Add(*r)
	}
	return selector
}

func TestOverlapIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var selectors []labels.Selector
		var requirements []labels.Requirements
		for range rapid.IntRange(1, 3).Draw(t, "selectors") {
			s := selectorOf(t, expressionsGen().Draw(t, "expressions"))
			rs, _ := s.Requirements()
			selectors, requirements = append(selectors, s), append(requirements, rs)
		}
		if got, want := noderule.Overlap(requirements...), someNodeMatches(selectors...); got != want {
			t.Fatalf("overlap of %v: got %t, exhaustive search says %t", selectors, got, want)
		}
	})
}

// The same through the front door: exactly the selectors that share a node conflict.
func TestConflictsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := expressionsGen().Draw(t, "first"), expressionsGen().Draw(t, "second")
		book := noderule.NewRulebook(rules(rule("first", selectsBy(first...)), rule("second", younger, selectsBy(second...))))
		conflict := book.Rule(uidOf("second")).Problem != nil
		if want := someNodeMatches(selectorOf(t, first), selectorOf(t, second)); conflict != want {
			t.Fatalf("%v and %v: in conflict %t, share a node %t", first, second, conflict, want)
		}
	})
}

func TestSelectorsWithoutRequirementsOverlap(t *testing.T) {
	if !noderule.Overlap() || !noderule.Overlap(labels.Requirements{}) {
		t.Error("selectors without requirements match every node, so they overlap")
	}
}

// A selector compiled by us must match as the library does; matchLabels is In with one value.
func TestMatchLabelsAndExpressionsMeanTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom(overlapValues).Draw(t, "value")
		expressions := expressionsGen().Draw(t, "expressions")
		r := rule("r", selectsBy(expressions...))
		r.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"zone": value}
		got, want := compiled(r), selectorOf(t, append(expressions, expression("zone", "In", value)))
		for set := range everyNode() {
			if selected := got.Selects(&noderule.Node{Labels: set}); selected != want.Matches(set) {
				t.Fatalf("labels %v: selected %t, want %t", set, selected, want.Matches(set))
			}
		}
	})
}
