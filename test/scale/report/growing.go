package report

import (
	"fmt"
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
	var e effort
	known := true
	for _, r := range run.read(result) {
		t := tallyOf(r.Requests)
		e.cpu += r.CPU
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

// writesAt compares flips with more rules with that of one. Less than ten rules can show that
// the budget is missed, and not that it is met.
func writesAt(run *Run, nodes int) answer {
	one := run.flip(nodes, 1)
	if one == nil {
		return answer{}
	}
	before := run.effort(one)
	var words []string
	var most ratio
	rules := 0
	for _, t := range run.trials() {
		if t.scenario != Flip || t.nodes != nodes || t.rules < 5 {
			continue
		}
		more := run.flip(nodes, t.rules)
		if more == nil {
			continue
		}
		rules = max(rules, t.rules)
		if times := over(run.effort(more).writes, before.writes); times > 0 {
			most = max(most, times)
			words = append(words, fmt.Sprintf("%v with %s", times, counted(t.rules, "rule")))
		}
	}
	if words == nil {
		return answer{}
	}
	a := judge(most <= writesLimit, "%s", strings.Join(words, ", "))
	if a.outcome == met && rules < 10 {
		a.outcome = partly
	}
	return a
}
