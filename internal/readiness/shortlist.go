package readiness

import (
	"cmp"
	"slices"
)

// shortlist keeps the first few of the nodes that a rule selects, held ones first, then by
// name.
type shortlist struct {
	limit int
	list  []standingOn
}

// standingOn is one node on the way into a summary. It has no Unmet.
type standingOn struct {
	Standing
	node *Node
}

func standOn(rule *Rule, node *Node) standingOn {
	s := standingOn{Standing: Standing{Tainted: node.Has(rule.ID()), Owned: owns(rule, node)}, node: node}
	s.Rule = rule
	s.State, s.Completed = judge(rule, node)
	return s
}

// offer takes the node into the list, unless limit others come before it.
func (l *shortlist) offer(s *standingOn) {
	switch full := len(l.list) == l.limit; {
	case s.State == NotSelected || l.limit == 0 || full && compareStandings(*s, l.list[l.limit-1]) >= 0:
		return
	case full:
		l.list = l.list[:l.limit-1]
	}
	i, _ := slices.BinarySearchFunc(l.list, *s, compareStandings)
	l.list = slices.Insert(l.list, i, *s)
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

// summaries are the nodes of the list in its order.
func (l *shortlist) summaries() []NodeSummary {
	var nodes []NodeSummary
	for _, s := range l.list {
		nodes = append(nodes, NodeSummary{
			Name:         s.node.Name,
			State:        s.State,
			Tainted:      s.Tainted,
			Settled:      s.Settled(),
			Observations: Observe(s.Rule, s.node),
		})
	}
	return nodes
}
