package noderule

import (
	"cmp"
	"slices"
	"time"
)

// shortlist keeps the first limit nodes that a rule selects, held ones first, then by name.
type shortlist struct {
	limit int
	list  []evaluated
}

// evaluated is one node on the way into a summary. It has no Unmet.
type evaluated struct {
	Standing
	facts facts
}

func (e *evaluated) evaluate(rule *Rule, node *Node, now time.Time) {
	f := &e.facts
	f.decode(rule, node)
	o := f.evaluate(now)
	e.Verdict = Verdict{Rule: rule, State: o.state, Completed: o.completed, Cause: o.cause, Stuck: o.stuck, Until: o.until}
	e.Tainted, e.Owned = f.tainted(), f.owned()
}

// offer adds the node to the list, unless limit other nodes come before it.
func (l *shortlist) offer(s *evaluated) {
	switch full := len(l.list) == l.limit; {
	case s.State == NotSelected || l.limit == 0 || full && compareEvaluated(*s, l.list[l.limit-1]) >= 0:
		return
	case full:
		l.list = l.list[:l.limit-1]
	}
	i, _ := slices.BinarySearchFunc(l.list, *s, compareEvaluated)
	l.list = slices.Insert(l.list, i, *s)
}

func compareEvaluated(a, b evaluated) int {
	return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(a.facts.node.Name, b.facts.node.Name))
}

func rank(s State) int {
	if s == Held {
		return 0
	}
	return 1
}

// summaries returns the nodes of the list in its order.
func (l *shortlist) summaries(now time.Time) []NodeSummary {
	var nodes []NodeSummary
	for _, s := range l.list {
		nodes = append(nodes, NodeSummary{
			Name:         s.facts.node.Name,
			State:        s.State,
			Tainted:      s.Tainted,
			Settled:      s.Settled(),
			Limited:      s.Cause == CauseLimit,
			Observations: s.facts.observe(now),
		})
	}
	return nodes
}
