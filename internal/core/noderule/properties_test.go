package noderule_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

func idOf(t corev1.Taint) noderule.TaintID { return noderule.TaintID{Key: t.Key, Effect: t.Effect} }

func isForeign(t corev1.Taint) bool {
	return !slices.ContainsFunc(v1alpha1.TaintPrefixes, func(prefix string) bool { return strings.HasPrefix(t.Key, prefix) })
}

// without is the taints for which drop is false, in their order.
func without(taints []corev1.Taint, drop func(corev1.Taint) bool) []string {
	return taintStrings(slices.DeleteFunc(slices.Clone(taints), drop))
}

func foreignAnnotations(n *noderule.Node) map[string]string {
	foreign := maps.Clone(n.Annotations)
	maps.DeleteFunc(foreign, func(key, _ string) bool { return noderule.IsOurs(key) })
	return foreign
}

func TestAPlanAppliedLeavesNothingToPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		plan := book.Plan(n, noon)
		later := noon.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "hours later")) * time.Hour)
		if again := book.Plan(plan.Apply(n), later); !again.Empty() || len(again.Changes) > 0 {
			t.Fatalf("planned %+v, then %+v", plan, again)
		}
	})
}

func TestForeignTaintsAndAnnotationsSurviveAnyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		checkForeignSurvive(t, book.Plan(n, noon), n)
	})
}

// Rules that name foreign taints are invalid; they can be stored under another CRD.
func TestForeignTaintsSurviveRulesThatNameThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, everyTaint)), genNode(t)
		checkForeignSurvive(t, book.Plan(n, noon), n)
	})
}

func checkForeignSurvive(t rapid.TB, plan *noderule.Plan, n *noderule.Node) {
	t.Helper()
	applied := plan.Apply(n)
	ours := func(t corev1.Taint) bool { return !isForeign(t) }
	if before, after := without(n.Taints, ours), without(applied.Taints, ours); !slices.Equal(before, after) {
		t.Fatalf("foreign taints: had %v, left %v", before, after)
	}
	if before, after := foreignAnnotations(n), foreignAnnotations(applied); !maps.Equal(before, after) {
		t.Fatalf("foreign annotations: had %v, left %v", before, after)
	}
}

// A plan does what the rules ask for and no more: taints come for rules that hold the node, and
// go only for rules that release it or have a record there. What stays keeps order and value.
func TestPlanDoesExactlyWhatRulesRequire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n := noderule.NewRulebook(genRules(t, managedTaints)), genNode(t)
		book.Listed = listedOn(n)
		plan := book.Plan(n, noon)
		applied := plan.Apply(n)
		d := demandsOn(book, n)

		came, went := notIn(n, applied.Taints), notIn(applied, n.Taints)
		for _, id := range came {
			if !d.held[id] {
				t.Fatalf("%v was added, and no rule holds the node with it", id)
			}
		}
		for _, id := range went {
			if !d.removable[id] || d.held[id] {
				t.Fatalf("%v was removed, and no rule released it", id)
			}
		}
		stayed := without(n.Taints, func(t corev1.Taint) bool { return !applied.Has(idOf(t)) })
		if kept := taintStrings(applied.Taints)[:len(stayed)]; !slices.Equal(kept, stayed) {
			t.Fatalf("taints that stay: had %v, left %v", stayed, kept)
		}
		checkReported(t, plan, noderule.Added, came)
		checkReported(t, plan, noderule.Removed, went)
		checkServed(t, plan)
		d.checkMet(t, applied)
	})
}

// checkServed checks that each rule whose annotation the plan touches has a change in it: a
// rejected write must be reported on every rule that needs it.
func checkServed(t *rapid.T, plan *noderule.Plan) {
	keys := slices.AppendSeq(slices.Clone(plan.Remove), maps.Keys(plan.Set))
	for _, key := range keys {
		if !slices.ContainsFunc(plan.Changes, func(c noderule.Change) bool { return strings.HasSuffix(key, string(c.UID)) }) {
			t.Fatalf("%s is touched for a rule that is not named in %v", key, plan.Changes)
		}
	}
}

// notIn are those of the taints that the node does not have.
func notIn(n *noderule.Node, taints []corev1.Taint) []noderule.TaintID {
	var missing []noderule.TaintID
	for _, taint := range taints {
		if !n.Has(idOf(taint)) {
			missing = append(missing, idOf(taint))
		}
	}
	return missing
}

// demands is what the rules require of a node, in the plainest implementation.
type demands struct {
	held, released, removable map[noderule.TaintID]bool
	holders, others           []string // keys of the records that must be there, and that must not
}

func demandsOn(book *noderule.Rulebook, n *noderule.Node) demands {
	d := demands{held: map[noderule.TaintID]bool{}, released: map[noderule.TaintID]bool{}, removable: map[noderule.TaintID]bool{}}
	for _, v := range book.Evaluate(n, noon).Verdicts {
		previews := v.Rule.DryRun && !v.Rule.Deleting && v.Rule.Problem == nil
		if !previews {
			d.add(v, n)
		}
	}
	for key, value := range n.Annotations {
		if uid, ok := strings.CutPrefix(key, v1alpha1.HoldPrefix); ok && book.Rule(types.UID(uid)) == nil {
			d.addStray(key, value)
		}
	}
	return d
}

func (d *demands) add(v noderule.Verdict, n *noderule.Node) {
	key := v1alpha1.HoldPrefix + string(v.Rule.UID)
	recorded := recorded(v.Rule, n)
	if v.State == noderule.Held {
		d.held[v.Rule.ID()] = true
		d.holders = append(d.holders, key)
		return
	}
	if recorded {
		d.others = append(d.others, key)
	}
	releases := v.State == noderule.Released && !v.Completed // a completed rule changes nothing
	d.released[v.Rule.ID()] = d.released[v.Rule.ID()] || releases
	d.removable[v.Rule.ID()] = d.removable[v.Rule.ID()] || recorded || releases
}

// addStray makes the record of a deleted rule remove its taint. The list has all pairs of records.
func (d *demands) addStray(key, value string) {
	if id, ok := noderule.RecordTaint(value); ok {
		d.others = append(d.others, key)
		d.removable[id] = true
	}
}

func (d demands) checkMet(t *rapid.T, applied *noderule.Node) {
	for id := range d.held {
		if !applied.Has(id) {
			t.Fatalf("%v is to be held, and is not on the node", id)
		}
	}
	for id, released := range d.released {
		if released && applied.Has(id) {
			t.Fatalf("%v is released, and still on the node", id)
		}
	}
	for _, key := range d.holders {
		if _, ok := applied.Annotations[key]; !ok {
			t.Fatalf("%s is missing on a node that its rule holds", key)
		}
	}
	for _, key := range d.others {
		if _, ok := applied.Annotations[key]; ok {
			t.Fatalf("%s is left on a node that its rule does not hold", key)
		}
	}
}

// checkReported compares the changes that a plan reports with what became of the taints.
func checkReported(t *rapid.T, plan *noderule.Plan, kind noderule.ChangeKind, want []noderule.TaintID) {
	reported := map[noderule.TaintID]int{}
	for _, c := range plan.Changes {
		if c.Kind == kind {
			reported[c.Taint]++
		}
	}
	for _, id := range want {
		if reported[id] != 1 {
			t.Fatalf("%s %v is reported %d times in %v", kind, id, reported[id], plan.Changes)
		}
	}
	if len(reported) != len(want) {
		t.Fatalf("%s: reported %v, done %v", kind, reported, want)
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objs, n := genRules(t, managedTaints), genNode(t)
		shuffled := *n
		shuffled.Conditions = rapid.Permutation(n.Conditions).Draw(t, "order of conditions")
		shuffled.Taints = rapid.Permutation(n.Taints).Draw(t, "order of taints")
		book := noderule.NewRulebook(objs)
		other := noderule.NewRulebook(rapid.Permutation(objs).Draw(t, "order of rules"))

		if a, b := standings(book), standings(other); !slices.Equal(a, b) {
			t.Fatalf("rulebooks differ: %v and %v", a, b)
		}
		if a, b := sayAll(book.Evaluate(n, noon).Verdicts), sayAll(other.Evaluate(&shuffled, noon).Verdicts); !slices.Equal(a, b) {
			t.Fatalf("verdicts differ: %v and %v", a, b)
		}
		a, b := book.Plan(n, noon), other.Plan(&shuffled, noon)
		sortTaints(a.Taints)
		sortTaints(b.Taints)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("plans differ: %+v and %+v", a, b)
		}
	})
}

// Nodes are the cache's own: who decides must not change them, nor write behind the end of their
// lists.
func TestDecidingChangesNoNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, n, other := noderule.NewRulebook(genRules(t, everyTaint)), genNode(t), genNode(t)
		n.Taints, n.Conditions = slices.Grow(n.Taints, 3), slices.Grow(n.Conditions, 3)
		before := copyOf(n)

		book.Evaluate(n, noon).ApplyDependencies()
		book.Plan(n, noon).Apply(n)
		book.Concerns(n, other)
		book.Admitted(other, n)
		if after := copyOf(n); !reflect.DeepEqual(after, before) {
			t.Fatalf("it was\n%+v\nand is\n%+v", before, after)
		}
	})
}

// copyOf is a node of its own, with what is behind the end of lists as well.
func copyOf(n *noderule.Node) *noderule.Node {
	c := *n
	c.Labels, c.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	c.Taints, c.Conditions = slices.Clone(n.Taints[:cap(n.Taints)]), slices.Clone(n.Conditions[:cap(n.Conditions)])
	return &c
}

func sayAll(verdicts []noderule.Verdict) []string {
	var said []string
	for _, v := range verdicts {
		said = append(said, v.Rule.Name+" "+say(v))
	}
	return said
}

func sortTaints(taints []corev1.Taint) {
	slices.SortFunc(taints, func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
}
