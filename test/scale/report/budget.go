package report

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the design.
const (
	timeLimit   = 1.2       // times the floor, when all nodes flip
	bytesLimit  = 1.5       // times the floor
	memoryLimit = 100 << 20 // bytes, with memoryNodes
	memoryNodes = 5000
	workLimit   = 11.0 // times the work, with ten times the nodes
	writesLimit = 1.5  // times the writes, with ten times the rules
	nodeLimit   = 4 << 10
	statusLimit = 64 << 10 // bytes of a rule

	// underWayLimit is what the manager promises of its requests (--node-concurrent-reconciles).
	underWayLimit = 20
)

// budgetSizes are the numbers of nodes that budgets are for, unless they are for any.
var budgetSizes = []int{1000, 5000}

// sizes are those, and others at which a budget for any size was measured.
func (run *Run) sizes() []int {
	sizes := slices.Clone(budgetSizes)
	for _, p := range run.moreRules() {
		sizes = append(sizes, p.nodes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// outcome of a budget at one size.
type outcome int

const (
	unmeasured outcome = iota
	unasked            // the budget says nothing about this size
	partly             // met by what was measured, which is less than the budget is about
	met
	missed
)

// answer is what a run says about a budget at one size.
type answer struct {
	outcome outcome
	words   string
}

// judge is met or missed, with the words for what was measured.
func judge(ok bool, format string, args ...any) answer {
	a := answer{met, fmt.Sprintf(format, args...)}
	if !ok {
		a.outcome = missed
	}
	return a
}

// budget is a line of the design's table.
type budget struct {
	what  string
	limit string
	at    func(run *Run, nodes int) answer
	any   bool // it is for any number of nodes
}

func (b budget) answer(run *Run, nodes int) answer {
	if !b.any && !slices.Contains(budgetSizes, nodes) {
		return answer{unasked, ""}
	}
	return b.at(run, nodes)
}

var budgets = []budget{
	{"all nodes flip, time until the last taint changed", "≤ 1.2 × floor", timeAt, false},
	{"writes of a node for one change of it", "1", patchesAt, false},
	{"events for one change of a node", "≤ 1", eventsAt, false},
	{"writes of the status of a rule", "≤ 1 a second", statusAt, false},
	{"bytes into etcd", "≤ 1.5 × floor", bytesAt, false},
	{"peak memory with 5,000 realistic nodes", "≤ 100 MiB", memoryAt, false},
	{"quiet cluster", "0 writes but leases", quietAt, false},
	{"ten times the nodes (500 to 5,000)", "≤ 11 × the work", workAt, false},
	{"ten times the rules", "≤ 1.5 × the writes", writesAt, true},
}

// verdict sums up the answers at these sizes: what was missed is said first, and nothing that
// was not measured counts as met.
func verdict(nodes []int, answers []answer) string {
	at := func(which outcome) []string {
		var sizes []string
		for i, a := range answers {
			if a.outcome == which {
				sizes = append(sizes, number(nodes[i]))
			}
		}
		return sizes
	}
	asked := len(answers) - len(at(unasked))
	switch missedAt, metAt, unmeasuredAt := at(missed), at(met), at(unmeasured); {
	case len(missedAt) > 0 && asked > 1:
		return "**missed** at " + listed(missedAt)
	case len(missedAt) > 0:
		return "**missed**"
	case len(at(partly)) > 0:
		return "met as far as measured"
	case len(metAt) == 0:
		return "not measured"
	case len(unmeasuredAt) > 0:
		return fmt.Sprintf("met at %s, not measured at %s", listed(metAt), listed(unmeasuredAt))
	}
	return "met"
}

// budgetTable is the table of the page, and a sentence that sums it up.
func budgetTable(run *Run) (table, summary string) {
	what, limit := column{name: "budget", text: true, always: true}, column{name: "limit", text: true, always: true}
	allSizes := run.sizes()
	sizes := make([]column, len(allSizes))
	result := column{name: "", text: true}
	var lost []string
	full := 0
	for _, b := range budgets {
		var answers []answer
		for i, nodes := range allSizes {
			a := b.answer(run, nodes)
			answers = append(answers, a)
			sizes[i].name, sizes[i].text = counted(nodes, "node"), true
			sizes[i].cells = append(sizes[i].cells, a.said())
		}
		judged := verdict(allSizes, answers)
		what.cells, limit.cells, result.cells = append(what.cells, b.what), append(limit.cells, b.limit), append(result.cells, judged)
		if strings.Contains(judged, "missed") {
			lost = append(lost, b.what)
		}
		if judged == "met" {
			full++
		}
	}
	switch {
	case lost != nil:
		are := "are"
		if len(lost) == 1 {
			are = "is"
		}
		summary = fmt.Sprintf("**%d of %d budgets %s missed**: %s.", len(lost), len(budgets), are, strings.Join(lost, "; "))
	case full < len(budgets):
		summary = fmt.Sprintf("%d of %d budgets are met, and none is missed; the others were not measured in full.", full, len(budgets))
	default:
		summary = "All budgets are met."
	}
	return grid{[]column{what, limit}, append(sizes, result)}.markdown(), summary
}

// said is the cell of an answer.
func (a answer) said() string {
	switch a.outcome {
	case unmeasured:
		return "not measured"
	case missed:
		return "**" + a.words + "**"
	}
	return a.words
}

// unfinishedOurs says which trials ours did not get through.
func (run *Run) unfinishedOurs() []string {
	var all []string
	for _, t := range run.trials() {
		at := slices.IndexFunc(t.results, func(r *Result) bool { return r.Subject == Ours && r.Problem != "" })
		if at >= 0 {
			all = append(all, fmt.Sprintf("%s, %s: %s", titleOf(t.scenario), t.size(), t.results[at].Problem))
		}
	}
	return all
}
