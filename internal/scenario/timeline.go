package scenario

import (
	"fmt"
	"path"
	"slices"
	"time"
)

// Moment is one thing that happens, so long after its step began.
type Moment struct {
	Step   int
	After  time.Duration
	Action Action
}

// Action is what happens in a moment. One field is set; a step that only prints or waits has none.
type Action struct {
	Apply     *Apply
	Delete    *Delete
	Join      *Node
	Deploy    *Deploy
	DaemonSet *DaemonSet
	Health    *HealthChange
	Reporter  *Reporter
	Boot      *Boot
	Sandbox   *Sandbox
	Expect    *Expect
}

// Node is a node that joins.
type Node struct {
	Name       string
	Labels     map[string]string
	Taints     []string
	Components []string // those that a reporter speaks for, by name, in alphabetical order
	Reporter   bool
}

// HealthChange is a change of a component on one node.
type HealthChange struct {
	Node, Component string
	Is              Health
}

// Reporter starts or stops on one node.
type Reporter struct {
	Node string
	Run  bool
}

// Boot is a node that goes away for a reboot, or is there in another boot.
type Boot struct {
	Node string
	Away bool
}

// Sandbox is what happens to the pods of a Deployment on one node: their sandbox goes, or they have a
// new one.
type Sandbox struct {
	Node, Deploy string
	Gone         bool
}

// Timeline is the scenario, moment by moment, with every pattern replaced by names. The duration of an
// expectation is unknown: a step begins when the one before it is over.
func (s *Scenario) Timeline() []Moment {
	var moments []Moment
	var joined []string
	for i := range s.Steps {
		step := &s.Steps[i]
		add := func(after time.Duration, action Action) {
			moments = append(moments, Moment{Step: i, After: after, Action: action})
		}
		switch {
		case step.Join != nil:
			names := step.Join.names()
			joined = append(joined, names...)
			for n, name := range names {
				add(times(n, step.Join.Every), Action{Join: s.node(name, step.Join)})
			}
		case step.Component != nil:
			for n, name := range matching(step.Component.Nodes, joined) {
				add(times(n, step.Component.Every), Action{Health: &HealthChange{Node: name, Component: step.Component.Name, Is: step.Component.Is}})
			}
		case step.Reporters != nil:
			for _, name := range matching(step.Reporters.Nodes, joined) {
				add(0, Action{Reporter: &Reporter{Node: name, Run: step.Reporters.Run}})
			}
		case step.Reboot != nil:
			step.Reboot.addBoots(matching(step.Reboot.Nodes, joined), add)
		case step.NewSandbox != nil:
			step.NewSandbox.addSandboxes(matching(step.NewSandbox.Nodes, joined), add)
		case step.Pause != nil:
			add(step.Pause.Duration, Action{})
		default:
			add(0, Action{Apply: step.Apply, Delete: step.Delete, Deploy: step.Deploy, DaemonSet: step.DaemonSet, Expect: step.Expect})
		}
	}
	return moments
}

// Length is the minimum duration of the scenario: pauses, and what must stay so for a time.
func (s *Scenario) Length() time.Duration {
	var length time.Duration
	moments := s.Timeline()
	for i, moment := range moments {
		if i+1 == len(moments) || moments[i+1].Step != moment.Step {
			length += moment.After
		}
		if moment.Action.Expect != nil {
			length += moment.Action.Expect.StableFor()
		}
	}
	return length
}

func (s *Scenario) node(name string, join *Join) *Node {
	node := &Node{Name: name, Labels: join.Labels, Taints: join.Taints, Reporter: join.Reporter == nil || *join.Reporter}
	for name, component := range s.Components {
		if component.Condition != "" && (join.Runs == nil || slices.Contains(*join.Runs, name)) {
			node.Components = append(node.Components, name)
		}
	}
	slices.Sort(node.Components)
	return node
}

// addBoots adds what happens to the nodes: all of them go, and all of them come back.
func (r *Reboot) addBoots(nodes []string, add func(time.Duration, Action)) {
	if r.Takes != nil {
		for _, name := range nodes {
			add(0, Action{Boot: &Boot{Node: name, Away: true}})
		}
	}
	for _, name := range nodes {
		add(r.Takes.or(0), Action{Boot: &Boot{Node: name}})
	}
}

// defaultAbsence is how long a pod has no sandbox: time enough to see that it has none.
const defaultAbsence = 3 * time.Second

// addSandboxes adds what happens to the pods on these nodes: all lose theirs, and all get new ones.
func (s *NewSandbox) addSandboxes(nodes []string, add func(time.Duration, Action)) {
	for _, name := range nodes {
		add(0, Action{Sandbox: &Sandbox{Node: name, Deploy: s.Deploy, Gone: true}})
	}
	for _, name := range nodes {
		add(s.Takes.or(defaultAbsence), Action{Sandbox: &Sandbox{Node: name, Deploy: s.Deploy}})
	}
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

func times(n int, every *Duration) time.Duration { return time.Duration(n) * every.or(0) }

// matching are the names that fit one of the patterns, in the order of the names.
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
