package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// effort is all that a subject needed for both phases of a flip.
type effort struct {
	cpu      time.Duration
	requests int
	writes   int
	bytes    int64 // its own; 0: not known
}

func (run *Run) effort(result *Result) effort {
	e := effort{cpu: run.medianCPU(result)}
	known := true
	for _, r := range run.read(result) {
		t := tallyOf(r.Requests)
		e.requests += t.total()
		e.writes += t.writes
		own, ok := r.ownBytes()
		e.bytes, known = e.bytes+own, known && ok
	}
	if !known {
		e.bytes = 0
	}
	return e
}

// medianCPU is what the median run of a result used in all phases, at equal speeds. Where not all
// runs are known it is the best.
func (run *Run) medianCPU(result *Result) time.Duration {
	var runs []time.Duration
	for i := range result.Phases {
		attempts := calm(result.runs(&result.Phases[i]))
		if attempts == nil {
			attempts = []Attempt{result.Phases[i].asAttempt()}
		}
		for j, a := range attempts {
			if j == len(runs) {
				runs = append(runs, 0)
			}
			runs[j] += run.even(a, Attempt.used)
		}
	}
	return median(runs)
}

// flip is the finished flip of ours with so many nodes and rules; nil if there is none.
func (run *Run) flip(nodes, rules int) *Result {
	for i := range run.Results {
		r := &run.Results[i]
		if r.Subject == Ours && r.Scenario == Flip && r.Nodes == nodes && r.Rules == rules && r.Problem == "" {
			return r
		}
	}
	return nil
}

// workAt compares 5,000 nodes with 500.
func workAt(run *Run, nodes int) answer {
	const few, many = 500, 5000
	if nodes != many {
		return answer{unasked, ""}
	}
	rules := run.fewestRules()
	small, large := run.flip(few, rules), run.flip(many, rules)
	if small == nil || large == nil {
		return answer{}
	}
	before, after := run.effort(small), run.effort(large)
	var words []string
	var most ratio
	for _, part := range []struct {
		name  string
		times ratio
	}{
		{"CPU", over(after.cpu, before.cpu)},
		{"requests", over(after.requests, before.requests)},
		{"bytes", over(after.bytes, before.bytes)},
	} {
		if part.times > 0 {
			most = max(most, part.times)
			words = append(words, fmt.Sprintf("%s %v", part.name, part.times))
		}
	}
	if words == nil {
		return answer{}
	}
	return judge(most <= workLimit, "%s", strings.Join(words, ", "))
}

// tenfold are ten times the rules: with less a budget can be missed, and not met.
const tenfold = 10

// moreRules are the finished flips of ours with five rules or more, each beside that with one
// and as many nodes, by nodes and rules.
func (run *Run) moreRules() (pairs []rulePair) {
	for _, t := range run.trials() {
		one, more := run.flip(t.nodes, 1), run.flip(t.nodes, t.rules)
		if t.scenario == Flip && t.rules >= 5 && one != nil && more != nil {
			pairs = append(pairs, rulePair{t.nodes, t.rules, over(run.effort(more).writes, run.effort(one).writes)})
		}
	}
	slices.SortStableFunc(pairs, func(a, b rulePair) int { return cmp.Compare(a.nodes, b.nodes) })
	return slices.DeleteFunc(pairs, func(p rulePair) bool { return p.times == 0 })
}

// rulePair is how many times the writes of one rule more of them need.
type rulePair struct {
	nodes, rules int
	times        ratio
}

// writesAt is asked of any number of nodes: a size without more rules has nothing to say where
// another has ten.
func writesAt(run *Run, nodes int) answer {
	pairs := run.moreRules()
	tested := slices.ContainsFunc(pairs, func(p rulePair) bool { return p.rules >= tenfold })
	var words []string
	var most ratio
	for _, p := range pairs {
		if p.nodes == nodes {
			most = max(most, p.times)
			words = append(words, fmt.Sprintf("%v with %s", p.times, counted(p.rules, "rule")))
		}
	}
	switch {
	case words == nil && tested:
		return answer{unasked, ""}
	case words == nil:
		return answer{}
	}
	a := judge(most <= writesLimit, "%s", strings.Join(words, ", "))
	if a.outcome == met && !tested {
		a.outcome = partly
	}
	return a
}
