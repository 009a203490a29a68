package scenario

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// Moment is a step, or the part of a step for one node. After is the time since the step began.
type Moment struct {
	Step  int
	After time.Duration
	// Node is the node that joins or changes; empty for a step without nodes.
	Node string
	// Away marks the first of two moments: the node goes down for a reboot, or its pods lose their sandboxes.
	Away bool
}

// defaultAbsence is how long a pod has no sandbox: long enough to be observed without one.
const defaultAbsence = 3 * time.Second

// Timeline returns the moments of the scenario, with every pattern replaced by names. The duration of an
// expectation is unknown: a step begins when the previous step has ended.
func (s *Scenario) Timeline() []Moment {
	var moments []Moment
	var joined []string
	for i := range s.Steps {
		step := &s.Steps[i]
		add := func(nodes []string, after, every time.Duration, away bool) {
			for n, node := range nodes {
				moments = append(moments, Moment{Step: i, After: after + time.Duration(n)*every, Node: node, Away: away})
			}
		}
		switch {
		case step.Join != nil:
			joined = append(joined, step.Join.names()...)
			add(step.Join.names(), 0, step.Join.Every.or(0), false)
		case step.Component != nil:
			add(matching(step.Component.Nodes, joined), 0, step.Component.Every.or(0), false)
		case step.Reporters != nil:
			add(matching(step.Reporters.Nodes, joined), 0, 0, false)
		case step.Reboot != nil:
			nodes := matching(step.Reboot.Nodes, joined)
			if step.Reboot.Takes != nil {
				add(nodes, 0, 0, true)
			}
			add(nodes, step.Reboot.Takes.or(0), 0, false)
		case step.NewSandbox != nil:
			nodes := matching(step.NewSandbox.Nodes, joined)
			add(nodes, 0, 0, true)
			add(nodes, step.NewSandbox.Takes.or(defaultAbsence), 0, false)
		default:
			add([]string{""}, step.Pause.or(0), 0, false)
		}
	}
	return moments
}

// Length returns the minimum duration of the scenario: pauses and the for fields of expectations.
func (s *Scenario) Length() time.Duration {
	var length time.Duration
	moments := s.Timeline()
	for i, moment := range moments {
		if i+1 == len(moments) || moments[i+1].Step != moment.Step {
			length += moment.After
		}
		if expect := s.Steps[moment.Step].Expect; expect != nil {
			length += expect.StableFor()
		}
	}
	return length
}

// Reported returns the names of the components that the reporter of a joining node checks, sorted.
func (s *Scenario) Reported(join *Join) []string {
	var names []string
	for name, component := range s.Components {
		if component.Condition != "" && (join.Runs == nil || slices.Contains(*join.Runs, name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (j *Join) names() []string {
	if j.Count == nil {
		return []string{j.Name}
	}
	names := make([]string, *j.Count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", j.Name, i+1)
	}
	return names
}

// matching returns the names that match one of the patterns, in the order of the names.
func matching(patterns, names []string) []string {
	var found []string
	for _, name := range names {
		if matchesAny(patterns, name) {
			found = append(found, name)
		}
	}
	return found
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	})
}
