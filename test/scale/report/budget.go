package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// minPairs is the number of pairs below which a median cannot meet a budget.
const minPairs = 5

// isMissed is the result of a budget that a run exceeds.
const isMissed = "**missed**"

// budget is a limit on a value of a group.
type budget struct {
	name, limit string
	value       func(g group) (value float64, known bool)
	most        float64 // with 1 rule
	mostOfMany  float64 // with more rules
	text        func(float64) string
	medians     bool // the value is a median of pairs
}

var budgets = []budget{
	{"all nodes flip, time to the last taint", "≤ 1.15 × floor with 1 rule, ≤ 1.2 × with 5", func(g group) (float64, bool) { return known(median(g.timeRatios())) }, 1.15, 1.2, times, true},
	{"condition → taint, p99 of these flips", "≤ 1.5 × floor", func(g group) (float64, bool) { return known(g.ratio(p99)) }, 1.5, 1.5, times, false},
	{"PATCHes per node change", "1", perChange(func(t tally) int { return t.nodes }, false), 1, 1, plain, false},
	{"events per node change", "≤ 1", perChange(func(t tally) int { return t.events }, true), 1, 1, plain, false},
	{"status writes per rule", "≤ 1/s", func(g group) (float64, bool) { return most(g.ours, statusRate), requested(g) }, 1, 1, perSecond, false},
	{"bytes into etcd, flips", "≤ 1.2 × floor", func(g group) (float64, bool) { return known(g.bytesRatio()) }, 1.2, 1.2, times, false},
	{"memory of the manager, peak", "≤ 100 MiB with 5,000 nodes", func(g group) (float64, bool) { return known(most(g.ours, peak)) }, 100 << 20, 100 << 20, size, false},
	{"quiet cluster, writes", "≤ 1/s", func(g group) (float64, bool) { return most(g.ours, writeRate), g.phase == Steady }, 1, 1, perSecond, false},
}

func known(value float64) (float64, bool) { return value, value > 0 }

func requested(g group) bool {
	return slices.ContainsFunc(g.ours, func(r *Result) bool { return r.Requests != nil })
}

// perChange is the maximum number of these requests per change. A node that is created with the taint may have one more
// event.
func perChange(of func(tally) int, created bool) func(group) (float64, bool) {
	return func(g group) (float64, bool) {
		value := func(r *Result) float64 {
			changes := r.Changes
			if created {
				changes += r.Created
			}
			return float64(of(tallyOf(r.Requests))) / float64(max(1, changes))
		}
		return most(g.ours, value), requested(g) && g.ours[0].Changes > 0
	}
}

// outcome names the budgets that the run misses.
func (run *Run) outcome() string {
	var missed []string
	for _, row := range run.budgetRows() {
		if row[len(row)-1] == isMissed {
			missed = append(missed, row[0])
		}
	}
	if len(missed) == 0 {
		return "This run missed no budget.\n"
	}
	return fmt.Sprintf("This run missed %d of %d budgets: %s.\n", len(missed), len(budgets), strings.Join(missed, "; "))
}

// budgetTable compares a run with the budgets, at the sizes that have budgets.
func (run *Run) budgetTable() string {
	t := table{header: []string{"budget", "limit", "1,000 nodes", "5,000 nodes", "result"}, rows: run.budgetRows()}
	return t.markdown()
}

// budgetRows has one row per budget; the last cell is the result.
func (run *Run) budgetRows() [][]string {
	var rows [][]string
	for _, b := range budgets {
		row := []string{b.name, b.limit}
		verdict := "not measured"
		for _, nodes := range []int{1000, 5000} {
			cell, judged := b.cell(run.groups(), nodes)
			row = append(row, cell)
			if cell != "" && (verdict == "not measured" || verdict == "met" || judged == isMissed) {
				verdict = judged
			}
		}
		rows = append(rows, append(row, verdict))
	}
	return rows
}

// cell returns the largest value per number of rules, and whether the budget is met.
func (b budget) cell(groups []group, nodes int) (cell, verdict string) {
	largest := map[int]float64{}
	verdict = "met"
	for _, g := range groups {
		value, known := b.value(g)
		if !known || g.nodes != nodes {
			continue
		}
		if before, seen := largest[g.rules]; !seen || value > before {
			largest[g.rules] = value
		}
		limit := b.most
		if g.rules > 1 {
			limit = b.mostOfMany
		}
		switch {
		case value > limit:
			verdict = isMissed
		case b.medians && len(g.timeRatios()) < minPairs && verdict == "met":
			verdict = fmt.Sprintf("fewer than %d pairs", minPairs)
		}
	}
	var cells, values []string
	for _, rules := range slices.Sorted(maps.Keys(largest)) {
		value := b.text(largest[rules])
		values = append(values, value)
		cells = append(cells, fmt.Sprintf("%s (%s)", value, counted(rules, "rule")))
	}
	if len(slices.Compact(values)) == 1 {
		return values[0], verdict
	}
	return strings.Join(cells, ", "), verdict
}
