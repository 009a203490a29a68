package readiness

import (
	"cmp"
	"iter"
	"slices"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Summary is a rule's standing over all nodes.
type Summary struct {
	Selected, Held, Released int

	// Unsettled counts the nodes that are not yet as the rule wants them.
	Unsettled int
	// Carrying counts the nodes that carry something that the rule put there, and Holding
	// the selected ones that carry its taint and its record.
	Carrying, Holding int

	// ToAdd and ToRemove count the nodes whose taint would change if the rule were
	// enforced, and Unreported those on which a condition does not exist at all.
	ToAdd, ToRemove, Unreported int

	// Blocked counts held nodes for each requirement that holds them back.
	Blocked map[string]int

	// Nodes are the selected nodes, held ones first, then by name; at most as many as were
	// asked for.
	Nodes []NodeSummary
}

// NodeSummary is a rule's standing on one selected node.
type NodeSummary struct {
	Name         string
	State        State
	Tainted      bool
	Settled      bool
	Observations []Observation
}

// Summarize looks at all nodes with the eyes of one rule and names at most limit of them.
func Summarize(rule *Rule, nodes iter.Seq[*Node], limit int) Summary {
	summary := Summary{Blocked: map[string]int{}}
	var selected []standing
	for node := range nodes {
		verdict := Evaluate(rule, node)
		s := standing{node: node, state: verdict.State, completed: verdict.Completed, tainted: node.Has(rule.ID()), owned: owns(rule, node)}
		summary.count(rule, s, verdict)
		if s.state != NotSelected {
			selected = append(selected, s)
		}
	}
	slices.SortFunc(selected, compareStandings)
	for _, s := range selected[:min(limit, len(selected))] {
		summary.Nodes = append(summary.Nodes, NodeSummary{
			Name:         s.node.Name,
			State:        s.state,
			Tainted:      s.tainted,
			Settled:      s.settled(rule),
			Observations: Observe(rule, s.node),
		})
	}
	return summary
}

func (s *Summary) count(rule *Rule, on standing, verdict Verdict) {
	if Carries(rule, on.node) {
		s.Carrying++
	}
	if !on.settled(rule) {
		s.Unsettled++
	}
	if on.tainted && on.state != Held && (on.owned || on.state == Released && !on.completed) {
		s.ToRemove++
	}
	if on.state != NotSelected {
		s.countSelected(rule, on, verdict)
	}
}

func (s *Summary) countSelected(rule *Rule, on standing, verdict Verdict) {
	s.Selected++
	if on.state == Released {
		s.Released++
	} else {
		s.Held++
		if !on.tainted {
			s.ToAdd++
		}
	}
	if on.tainted && on.owned {
		s.Holding++
	}
	for _, unmet := range verdict.Unmet {
		s.Blocked[unmet.Requirement.Type]++
	}
	if slices.ContainsFunc(rule.Requirements, func(r v1alpha1.ConditionRequirement) bool { return on.node.condition(r.Type) == nil }) {
		s.Unreported++
	}
}

// Carries says whether the node carries something that the rule put there.
func Carries(rule *Rule, node *Node) bool {
	return owns(rule, node) || rule.inherits(node) || has(node.Annotations, rule.completedKey)
}

// inherits says whether the node carries the taint of a rule that was deleted before
// Readygate first saw it. Another controller put it there, without a record.
func (r *Rule) inherits(node *Node) bool {
	return r.Inherited && r.Selects(node) && node.Has(r.ID())
}

// owns says whether the node carries the rule's record of ownership.
func owns(rule *Rule, node *Node) bool {
	return has(node.Annotations, rule.holdKey)
}

// standing is one node on the way into a summary.
type standing struct {
	node      *Node
	state     State
	completed bool
	tainted   bool
	owned     bool
}

// settled says whether the node is as the rule wants it.
func (s standing) settled(rule *Rule) bool {
	switch s.state {
	case Held:
		return s.tainted && s.owned
	case Released:
		return !s.owned && (s.completed || !s.tainted && !rule.Bootstrap)
	default:
		return !s.owned
	}
}

func compareStandings(a, b standing) int {
	return cmp.Or(cmp.Compare(rank(a.state), rank(b.state)), cmp.Compare(a.node.Name, b.node.Name))
}

func rank(s State) int {
	if s == Held {
		return 0
	}
	return 1
}
