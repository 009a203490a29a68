package noderule_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// wantNoAllocs is for what is done for every node, every rule or every event, and finds
// nothing to do nearly every time.
func wantNoAllocs(t *testing.T, name string, do func()) {
	t.Helper()
	if allocs := testing.AllocsPerRun(100, do); allocs > 0 {
		t.Errorf("%s: %v allocations, want none", name, allocs)
	}
}

func TestVerdictsWithoutAReasonDoNotAllocate(t *testing.T) {
	for name, c := range map[string]struct {
		rule *v1alpha1.NodeReadinessRule
		node *noderule.Node
	}{
		"released":                    {rule("net"), worker(ready)},
		"not selected":                {rule("net"), node(ready)},
		"of a rule that is deleted":   {rule("net", deleting), worker()},
		"completed":                   {rule("boot", bootstrapOnly), worker(completed("boot"))},
		"completed in the older form": {rule("boot", bootstrapOnly), worker(annotated(v1alpha1.CompletedPrefix+"boot", "x"))},
		"anyOf":                       {rule("any", anyOf, requires(requirement("A", True), requirement("B", True))), worker(reports("B", True))},
	} {
		r := compiled(c.rule)
		wantNoAllocs(t, name, func() { noderule.Evaluate(r, c.node, noon) })
	}
}

func TestPlansOfSettledNodesDoNotAllocate(t *testing.T) {
	preview := rule("preview", dryRun, previewsSince(dayOne))
	noted := benchNode("n", 5)
	for i := range 20 {
		annotated(fmt.Sprintf("example.com/note-%d", i), "value")(noted)
	}
	for name, c := range map[string]struct {
		book *noderule.Rulebook
		node *noderule.Node
	}{
		"one rule":                     {benchBook(1), benchNode("n", 1)},
		"five rules":                   {benchBook(5), benchNode("n", 5)},
		"annotations of others":        {benchBook(5), noted},
		"a hundred rules":              {benchBook(100), benchNode("n", 100)},
		"one of a hundred rules":       {noderule.NewRulebook(poolRules(100)), benchNode("n", 1)},
		"none of a hundred rules":      {noderule.NewRulebook(poolRules(100)), node()},
		"a rule that releases":         {noderule.NewRulebook(rules(rule("net"))), worker(ready)},
		"a rule that has completed":    {noderule.NewRulebook(rules(rule("boot", bootstrapOnly))), worker(ready)},
		"completed in the older form":  {noderule.NewRulebook(rules(rule("boot", bootstrapOnly))), worker(annotated(v1alpha1.CompletedPrefix+"boot", "{}"))},
		"a rule that only previews":    {noderule.NewRulebook(rules(preview)), worker(nodeCreatedAt(noon))},
		"a rule that is being deleted": {noderule.NewRulebook(rules(rule("net", deleting))), worker()},
		"no rule":                      {noderule.NewRulebook(nil), worker(annotated("example.com/x", "y"))},
	} {
		n := settled(c.book, c.node)
		wantNoAllocs(t, name, func() {
			if !c.book.Plan(n, noon).Empty() {
				t.Errorf("%s: not settled", name)
			}
		})
	}
}

func TestHeartbeatsDoNotAllocate(t *testing.T) {
	for name, book := range map[string]*noderule.Rulebook{"one rule": benchBook(1), "a hundred rules": benchBook(100)} {
		before := settled(book, benchNode("n", 10))
		after := heartbeat(before)
		wantNoAllocs(t, name+", Concerns", func() { book.Concerns(before, after) })
		wantNoAllocs(t, name+", Concerned", func() { book.Concerned(before, after) })
		wantNoAllocs(t, name+", Admitted", func() { book.Admitted(before, after) })
	}
}

func TestAStatusOfARuleDoesNotAllocate(t *testing.T) {
	before, after := rule("net"), rule("net", takenOverAt(noon))
	r := compiled(before)
	wantNoAllocs(t, "SameRule", func() { noderule.SameRule(before, after) })
	wantNoAllocs(t, "IsOf", func() { r.IsOf(after) })
}

// Counting is done for all nodes, and must not keep them all.
func TestASummaryOfManyNodesAllocatesNoMoreThanOneOfFew(t *testing.T) {
	book := benchBook(2)
	few, many := benchFleet(100), benchFleet(1000)
	for _, limit := range []int{0, 10} {
		allocs := func(nodes []*noderule.Node) float64 {
			return testing.AllocsPerRun(10, func() { book.Summaries(slices.Values(nodes), noon, limit) })
		}
		if of100, of1000 := allocs(few), allocs(many); of1000 > of100 {
			t.Errorf("limit %d: %v allocations for 1000 nodes, %v for 100", limit, of1000, of100)
		}
	}
}
