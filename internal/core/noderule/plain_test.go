package noderule_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Frequent operations have an optimized implementation. Its results must equal those of the plain implementation here.

func TestVerdictFollowsFromTheObservations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, n := compiled(genRule(t, "r0", managedTaints)), genNode(t)
		v := noderule.Evaluate(r, n, noon)
		if v.State == noderule.NotSelected || v.Completed {
			if v.Unmet != nil {
				t.Fatalf("%s, and yet there is a reason: %v", v.State, v.Unmet)
			}
			return
		}
		unmet := slices.DeleteFunc(noderule.Observe(r, n, noon), noderule.Observation.Met)
		held := len(unmet) > 0 && (!r.AnyOf || len(unmet) == len(r.Requirements))
		if held != (v.State == noderule.Held) || held && !reflect.DeepEqual(v.Unmet, unmet) || !held && v.Unmet != nil {
			t.Fatalf("got %s %v, observed %v", v.State, v.Unmet, noderule.Observe(r, n, noon))
		}
	})
}

func TestPlanIsTheSameWithComputedVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		got, want := book.Plan(n, noon), book.Evaluate(n, noon).Plan(nil)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("planned %+v, with verdicts %+v", got, want)
		}
	})
}

// Nodes are shared with a cache. Lists with room to grow are where a careless append writes.
func TestAPlanLeavesTheNodeAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		n.Taints = slices.Grow(n.Taints, 5)
		room := func() []corev1.Taint { return slices.Clone(n.Taints[:cap(n.Taints)]) }
		taints, annotations := room(), maps.Clone(n.Annotations)
		book.Plan(n, noon).Apply(n)
		if !reflect.DeepEqual(room(), taints) || !maps.Equal(n.Annotations, annotations) {
			t.Fatalf("had %v and %v, now %v and %v", taints, annotations, room(), n.Annotations)
		}
	})
}

// differences returns what differs between two states of a node, of what the rule names.
func differences(r *noderule.Rule, before, after *noderule.Node) (differ []string) {
	note := func(what string, a, b any) {
		if a != b {
			differ = append(differ, what)
		}
	}
	selected := r.Selects(after)
	note("selected", r.Selects(before), selected)
	if selected {
		note("created", before.UID, after.UID)
		was, is := noderule.Observe(r, before, noon), noderule.Observe(r, after, noon)
		for i := range is {
			note(is[i].Requirement.Type, statusOf(before, was[i]), statusOf(after, is[i]))
		}
	}
	completed, older := r.CompletedKeys()
	record := v1alpha1.HoldPrefix + string(r.UID)
	for _, key := range []string{record, completed, older} {
		was, had := before.Annotations[key]
		is, has := after.Annotations[key]
		note(key, fmt.Sprint(had, was), fmt.Sprint(has, is))
	}
	if selected || recorded(r, after) {
		note("taint", before.Has(r.ID()), after.Has(r.ID()))
	}
	return differ
}

// recorded says whether the node carries a record that can be the rule's: one that names its taint, or
// cannot be read.
func recorded(r *noderule.Rule, n *noderule.Node) bool {
	value, ok := n.Annotations[v1alpha1.HoldPrefix+string(r.UID)]
	var record struct{ Taint string }
	unread := json.Unmarshal([]byte(value), &record) != nil || !strings.Contains(record.Taint, ":")
	return ok && (unread || record.Taint == r.ID().String())
}

// statusOf is the status that the node itself has, which a default can hide.
func statusOf(n *noderule.Node, o noderule.Observation) string {
	for _, c := range n.Conditions {
		if string(c.Type) == o.Requirement.Type {
			return string(c.Status)
		}
	}
	return "missing"
}

func TestChangeIsRelevantExactlyToRulesThatNameIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, before := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		if oneIn(t, 4, "a condition twice") {
			changeTwice(t, before)
		}
		after := genChange(t, before)
		concerned := book.Concerned(before, after)
		for _, r := range book.Rules() {
			if differ := differences(r, before, after); len(differ) > 0 != slices.Contains(concerned, r) {
				t.Fatalf("rule %s: said to be concerned: %t; what differs: %v", r.Name, slices.Contains(concerned, r), differ)
			}
		}
		if len(concerned) > 0 && !book.Concerns(before, after) {
			t.Fatal("rules are concerned, and yet nothing is said to differ")
		}
	})
}

// changeTwice gives the node a condition that it may have already: the first one counts.
func changeTwice(t *rapid.T, n *noderule.Node) {
	reports(rapid.SampledFrom(conditionTypes).Draw(t, "again"), rapid.SampledFrom(allStatuses).Draw(t, "status again"))(n)
}

func TestSummaryListsTheFirstNodesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := noderule.NewRulebook(genRules(t, managedTaints))
		var nodes []*noderule.Node
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			n := genNode(t)
			n.Name = fmt.Sprintf("n%d", i)
			nodes = append(nodes, n)
		}
		nodes = rapid.Permutation(nodes).Draw(t, "order of nodes")
		limit := rapid.IntRange(0, 7).Draw(t, "limit")
		summaries := book.Summaries(slices.Values(nodes), noon, limit)
		for i, r := range book.Rules() {
			if one := noderule.Summarize(r, slices.Values(nodes), noon, limit); !reflect.DeepEqual(summaries[i], one) {
				t.Fatalf("rule %s: %+v among all, %+v alone", r.Name, summaries[i], one)
			}
			if got, want := summaries[i].Nodes, firstOf(r, nodes, limit); !reflect.DeepEqual(got, want) {
				t.Fatalf("rule %s, limit %d: names %v, want %v", r.Name, limit, got, want)
			}
		}
	})
}

// firstOf sorts all selected nodes and takes the first ones.
func firstOf(r *noderule.Rule, nodes []*noderule.Node, limit int) []noderule.NodeSummary {
	var all []noderule.NodeSummary
	for _, n := range nodes {
		if s := noderule.Stand(r, n, noon); s.State != noderule.NotSelected {
			all = append(all, noderule.NodeSummary{Name: n.Name, State: s.State, Tainted: s.Tainted, Settled: s.Settled(), Observations: noderule.Observe(r, n, noon)})
		}
	}
	slices.SortFunc(all, func(a, b noderule.NodeSummary) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Name, b.Name)) // Held comes before Released
	})
	if len(all) == 0 || limit == 0 {
		return nil
	}
	return all[:min(limit, len(all))]
}

func TestObjectsAreTheSameRuleIfTheyCompileToIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genRule(t, "r0", managedTaints)
		b := a.DeepCopy()
		for range rapid.IntRange(0, 2).Draw(t, "writes") {
			genWrite(t, b)
		}
		if got, want := noderule.SameRule(a, b), compiled(a).IsOf(b); got != want {
			t.Fatalf("same rule: %t, compiles to it: %t", got, want)
		}
		n := genNode(t)
		was, is := noderule.NewRulebook(rules(a)).Plan(n, noon), noderule.NewRulebook(rules(b)).Plan(n, noon)
		if noderule.SameRule(a, b) && !reflect.DeepEqual(was, is) {
			t.Fatalf("said to be the same rule, and yet it plans %+v, then %+v", was, is)
		}
	})
}

// genWrite is a write of a rule, as API servers store it: a new spec is a new generation.
func genWrite(t *rapid.T, r *v1alpha1.NodeReadinessRule) {
	at := &metav1.Time{Time: noon.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "at")) * time.Hour)}
	switch rapid.SampledFrom([]string{"spec", "delete", "take over", "preview", "replace", "count"}).Draw(t, "write") {
	case "spec":
		spec := genRule(t, "r0", managedTaints).Spec
		r.Spec, r.Generation = spec, r.Generation+1
	case "delete":
		r.DeletionTimestamp = at
	case "take over":
		r.Status.TakenOverAt = at
	case "preview":
		r.Status.DryRunSince = at
	case "replace":
		r.UID = "another"
	case "count":
		r.Status.Summary = &v1alpha1.RuleSummary{Selected: 7}
	}
}
