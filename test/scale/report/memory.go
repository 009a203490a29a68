package report

import (
	"cmp"
	"fmt"
	"slices"
)

// memory is the section on where the memory goes: of each size the first flip that tells, else
// any other result that does. The words are of the size that the budget of memory is for, else of the
// largest.
func memory(run *Run) (table, words string) {
	var told []*Result
	seen := map[int]bool{}
	for _, t := range run.trials() {
		for _, r := range t.results {
			if r.Subject == Ours && r.Heap > 0 && r.HeapEmpty > 0 && r.Nodes > 0 && !seen[r.Nodes] {
				seen[r.Nodes] = true
				told = append(told, r)
			}
		}
	}
	if told == nil {
		return "", "The live heap was not measured."
	}
	slices.SortFunc(told, func(a, b *Result) int { return cmp.Compare(a.Nodes, b.Nodes) })
	nodes, columns := column{name: "nodes", always: true}, []column{
		{name: "peak"}, {name: "resident when idle"}, {name: "live heap"}, {name: "of it without nodes"}, {name: "for each node"},
	}
	for _, r := range told {
		nodes.cells = append(nodes.cells, number(r.Nodes))
		for i, bytes := range []int64{r.Peak, r.Settled, r.Heap, r.HeapEmpty, perNode(r)} {
			columns[i].cells = append(columns[i].cells, size(bytes))
		}
	}
	judged := told[len(told)-1]
	if at := slices.IndexFunc(told, func(r *Result) bool { return r.Nodes == memoryNodes }); at >= 0 {
		judged = told[at]
	}
	words = fmt.Sprintf("With %s the live heap of the idle manager is %s, of which %s are there without any node: that is %s a node. The target is at most 4 KiB: ",
		counted(judged.Nodes, "node"), size(judged.Heap), size(judged.HeapEmpty), size(perNode(judged)))
	if perNode(judged) <= nodeLimit {
		words += "met."
	} else {
		words += "**missed**."
	}
	return grid{[]column{nodes}, columns}.markdown(), words
}

// perNode is what the live heap has for each node.
func perNode(r *Result) int64 { return (r.Heap - r.HeapEmpty) / int64(r.Nodes) }
