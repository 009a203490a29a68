package report

import (
	"cmp"
	"fmt"
	"slices"
)

// trial is one scenario at one size, with the results of all subjects.
type trial struct {
	scenario string
	nodes    int
	rules    int
	mode     string
	writers  int

	results []*Result // ours, the floor, others as the run has them; without nobody
}

// scenarios are in the order in which people read of them.
var scenarios = []string{Flip, Join, Create, Delete, Many, Steady, Restart, Flap, Busy, Slow}

// trials are those of the run, in the order of scenarios, then by size.
func (run *Run) trials() []*trial {
	var all []*trial
	for i := range run.Results {
		result := &run.Results[i]
		if result.Subject == Nobody {
			continue
		}
		at := slices.IndexFunc(all, func(t *trial) bool { return t.has(result) })
		if at < 0 {
			at = len(all)
			all = append(all, &trial{scenario: result.Scenario, nodes: result.Nodes, rules: result.Rules, mode: result.Mode, writers: result.Writers})
		}
		all[at].results = append(all[at].results, result)
	}
	for _, t := range all {
		slices.SortStableFunc(t.results, func(a, b *Result) int { return cmp.Compare(rank(a.Subject), rank(b.Subject)) })
	}
	slices.SortStableFunc(all, func(a, b *trial) int {
		return cmp.Or(cmp.Compare(place(a.scenario), place(b.scenario)), cmp.Compare(a.scenario, b.scenario),
			cmp.Compare(a.rules, b.rules), cmp.Compare(a.mode, b.mode), cmp.Compare(a.writers, b.writers), cmp.Compare(a.nodes, b.nodes))
	})
	return all
}

func (t *trial) has(r *Result) bool {
	return t.scenario == r.Scenario && t.nodes == r.Nodes && t.rules == r.Rules && t.mode == r.Mode && t.writers == r.Writers
}

// size is that of the trial in words.
func (t *trial) size() string {
	return counted(t.nodes, "node") + ", " + counted(t.rules, "rule")
}

func place(scenario string) int {
	if at := slices.Index(scenarios, scenario); at >= 0 {
		return at
	}
	return len(scenarios)
}

func rank(subject string) int {
	switch subject {
	case Ours:
		return 0
	case Floor:
		return 1
	}
	return 2
}

// subjects are all that acted, ours first, then the floor.
func (run *Run) subjects() []string {
	var names []string
	for _, result := range run.Results {
		if result.Subject != Nobody {
			names = append(names, result.Subject)
		}
	}
	names = unique(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// phase is the one of the result with this name; nil if there is none.
func (r *Result) phase(name string) *Phase {
	at := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &r.Phases[at]
}

// name says which result it is: "flip, 100 nodes, 1 rule".
func (r *Result) name() string {
	return fmt.Sprintf("%s, %s, %s", r.Scenario, counted(r.Nodes, "node"), counted(r.Rules, "rule"))
}
