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
	var selected []standingOn
	for node := range nodes {
		s := standingOn{Standing: Stand(rule, node), node: node}
		summary.count(s)
		if s.State != NotSelected {
			selected = append(selected, s)
		}
	}
	slices.SortFunc(selected, compareStandings)
	for _, s := range selected[:min(limit, len(selected))] {
		summary.Nodes = append(summary.Nodes, NodeSummary{
			Name:         s.node.Name,
			State:        s.State,
			Tainted:      s.Tainted,
			Settled:      s.Settled(),
			Observations: Observe(rule, s.node),
		})
	}
	return summary
}

func (s *Summary) count(on standingOn) {
	if Carries(on.Rule, on.node) {
		s.Carrying++
	}
	if !on.Settled() {
		s.Unsettled++
	}
	if on.Tainted && on.State != Held && (on.Owned || on.State == Released && !on.Completed) {
		s.ToRemove++
	}
	if on.State != NotSelected {
		s.countSelected(on)
	}
}

func (s *Summary) countSelected(on standingOn) {
	s.Selected++
	if on.State == Released {
		s.Released++
	} else {
		s.Held++
		if !on.Tainted {
			s.ToAdd++
		}
	}
	if on.Holding() {
		s.Holding++
	}
	for _, unmet := range on.Unmet {
		s.Blocked[unmet.Requirement.Type]++
	}
	if slices.ContainsFunc(on.Rule.Requirements, func(r v1alpha1.ConditionRequirement) bool { return on.node.condition(r.Type) == nil }) {
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

// standingOn is one node on the way into a summary.
type standingOn struct {
	Standing
	node *Node
}

func compareStandings(a, b standingOn) int {
	return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(a.node.Name, b.node.Name))
}

func rank(s State) int {
	if s == Held {
		return 0
	}
	return 1
}
