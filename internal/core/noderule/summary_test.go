package noderule_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

func summarize(r *v1alpha1.NodeReadinessRule, limit int, nodes ...*noderule.Node) noderule.Summary {
	return noderule.Summarize(compiled(r), slices.Values(nodes), noon, limit)
}

// counts puts the numbers of a summary in words.
func counts(s noderule.Summary) string {
	return fmt.Sprintf("%d selected, %d held, %d released", s.Selected, s.Held, s.Released)
}

var (
	ready       = reports("NetworkReady", True)
	notReadyYet = reports("NetworkReady", False)
)

func TestSummaryCounts(t *testing.T) {
	nodes := []*noderule.Node{worker(ready), worker(notReadyYet), worker(), node(), node(label("role", "gateway"), ready), worker(completed("net"))}
	for name, c := range map[string]struct {
		rule *v1alpha1.NodeReadinessRule
		want string
	}{
		"a rule counts the nodes that it selects":            {rule("net"), "4 selected, 3 held, 1 released"},
		"a rule that only previews counts as if enforced":    {rule("net", dryRun), "4 selected, 3 held, 1 released"},
		"a rule that is being deleted selects nothing":       {rule("net", deleting), "0 selected, 0 held, 0 released"},
		"a rule that is not accepted selects nothing":        {rule("net", taintKey(notReady)), "0 selected, 0 held, 0 released"},
		"a bootstrap-only rule counts completed as released": {rule("net", bootstrapOnly), "4 selected, 2 held, 2 released"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := counts(summarize(c.rule, 10, nodes...)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Each case is one node: what it adds to the counts of a rule that is not yet enforced there.
func TestSummaryOfOneNode(t *testing.T) {
	owns := owned("net", holdRecord)
	for name, c := range map[string]struct {
		node                                             *noderule.Node
		unsettled, carrying, toAdd, toRemove, unreported int
	}{
		"held, not written yet":                  {node: worker(notReadyYet), unsettled: 1, toAdd: 1},
		"held, tainted by another":               {node: worker(notReadyYet, tainted(hold)), unsettled: 1},
		"held, settled":                          {node: worker(notReadyYet, tainted(hold), owns), carrying: 1},
		"held, taint taken off":                  {node: worker(notReadyYet, owns), unsettled: 1, carrying: 1, toAdd: 1},
		"held, never reported":                   {node: worker(tainted(hold), owns), carrying: 1, unreported: 1},
		"released, settled":                      {node: worker(ready)},
		"released, still tainted":                {node: worker(ready, tainted(hold), owns), unsettled: 1, carrying: 1, toRemove: 1},
		"released, tainted by another":           {node: worker(ready, tainted(hold)), unsettled: 1, toRemove: 1},
		"released, record left":                  {node: worker(ready, owns), unsettled: 1, carrying: 1},
		"not selected":                           {node: node()},
		"not selected, tainted and owned":        {node: node(tainted(hold), owns), unsettled: 1, carrying: 1, toRemove: 1},
		"not selected, record left":              {node: node(owns), unsettled: 1, carrying: 1},
		"not selected, tainted, not owned":       {node: node(tainted(hold))},
		"not selected, memory left":              {node: node(completed("net")), carrying: 1},
		"a memory of the older form is not ours": {node: worker(ready, annotated(v1alpha1.CompletedPrefix+"net", "x"))},
	} {
		t.Run(name, func(t *testing.T) {
			s := summarize(rule("net"), 10, c.node)
			got := []int{s.Unsettled, s.Carrying, s.ToAdd, s.ToRemove, s.Unreported}
			if want := []int{c.unsettled, c.carrying, c.toAdd, c.toRemove, c.unreported}; !slices.Equal(got, want) {
				t.Errorf("unsettled, carrying, to add, to remove, unreported: got %v, want %v", got, want)
			}
		})
	}
}

func TestBootstrapOnlyNodeIsSettledWithItsCompletionRecord(t *testing.T) {
	boot := rule("boot", bootstrapOnly)
	for name, c := range map[string]struct {
		node *noderule.Node
		want int
	}{
		"not remembered":                 {worker(ready), 1},
		"remembered":                     {worker(ready, completed("boot")), 0},
		"remembered in the older form":   {worker(ready, annotated(v1alpha1.CompletedPrefix+"boot", "x")), 0},
		"remembered, but tainted":        {worker(completed("boot"), tainted(hold)), 0},
		"remembered, with a record left": {worker(completed("boot"), owned("boot", holdRecord)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summarize(boot, 10, c.node).Unsettled; got != c.want {
				t.Errorf("unsettled: got %d, want %d", got, c.want)
			}
		})
	}
}

// A rule is gone only when no node carries anything of it.
func TestCarrying(t *testing.T) {
	gone := rule("boot", bootstrapOnly, deleting)
	s := summarize(gone, 10, worker(owned("boot", holdRecord)), worker(completed("boot")), node(owned("boot", holdRecord), completed("boot")),
		worker(tainted(hold)), worker(owned("other", holdRecord), completed("other")))
	if s.Carrying != 3 {
		t.Errorf("got %d, want 3", s.Carrying)
	}
	if !noderule.Carries(compiled(gone), worker(completed("boot"))) || noderule.Carries(compiled(gone), worker(tainted(hold))) {
		t.Error("a memory is something of the rule, a taint without record is not")
	}
}

func TestSummaryCountsWhatBlocks(t *testing.T) {
	both := rule("both", requires(requirement("NetworkReady", True), requirement("StorageReady", True)))
	storage := reports("StorageReady", True)
	s := summarize(both, 10, worker(), worker(ready), worker(ready, storage), worker(notReadyYet, storage), node())
	if want := map[string]int{"NetworkReady": 2, "StorageReady": 2}; !reflect.DeepEqual(s.Blocked, want) {
		t.Errorf("got %v, want %v", s.Blocked, want)
	}
	anyOf(both)
	s = summarize(both, 10, worker(), worker(ready), worker(notReadyYet, storage))
	if want := map[string]int{"NetworkReady": 1, "StorageReady": 1}; !reflect.DeepEqual(s.Blocked, want) {
		t.Errorf("anyOf: got %v, want %v", s.Blocked, want)
	}
}

func TestSummaryNamesHeldNodesFirst(t *testing.T) {
	nodes := []*noderule.Node{
		worker(named("e"), ready), worker(named("b"), ready), worker(named("d")), node(named("a")), worker(named("c"), tainted(hold), owned("net", holdRecord)),
	}
	for limit, want := range map[int][]string{
		10: {"c Held tainted settled", "d Held", "b Released settled", "e Released settled"},
		3:  {"c Held tainted settled", "d Held", "b Released settled"},
		1:  {"c Held tainted settled"},
		0:  nil,
	} {
		s := summarize(rule("net"), limit, nodes...)
		wantEqual(t, fmt.Sprintf("limit %d", limit), nodeSummaries(s), want)
		if got := counts(s); got != "4 selected, 2 held, 2 released" {
			t.Errorf("limit %d must not cut the counts: %s", limit, got)
		}
	}
}

func nodeSummaries(s noderule.Summary) []string {
	var written []string
	for _, n := range s.Nodes {
		words := n.Name + " " + string(n.State)
		if n.Tainted {
			words += " tainted"
		}
		if n.Settled {
			words += " settled"
		}
		written = append(written, words)
	}
	return written
}

func TestSummaryObservesEveryRequirement(t *testing.T) {
	both := rule("both", requires(requirement("NetworkReady", True), requirement("StorageReady", False)))
	s := summarize(both, 10, worker(ready))
	want := noderule.Observe(compiled(both), worker(ready), noon)
	if len(s.Nodes) != 1 || !reflect.DeepEqual(s.Nodes[0].Observations, want) {
		t.Errorf("got %+v, want %v", s.Nodes, want)
	}
}
