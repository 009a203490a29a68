package noderule

import (
	"cmp"
	"slices"
	"time"
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

func standOn(rule *Rule, node *Node, now time.Time) standingOn {
	r := judge(rule, node, now)
	s := standingOn{Standing: Standing{Tainted: node.Has(rule.ID()), Owned: owns(rule, node)}, node: node}
	s.Verdict = Verdict{Rule: rule, State: r.state, Completed: r.completed, Cause: r.cause, Stuck: r.stuck, Until: r.until}
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
func (l *shortlist) summaries(now time.Time) []NodeSummary {
	var nodes []NodeSummary
	for _, s := range l.list {
		nodes = append(nodes, NodeSummary{
			Name:         s.node.Name,
			State:        s.State,
			Tainted:      s.Tainted,
			Settled:      s.Settled(),
			Limited:      s.Cause == CauseLimit,
			Observations: Observe(s.Rule, s.node, now),
		})
	}
	return nodes
}
