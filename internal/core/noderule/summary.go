package noderule

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// Summary is the state of a rule on all nodes.
type Summary struct {
	Selected, Held, Released int

	// Unsettled counts the nodes that are not yet as the rule requires.
	Unsettled int
	// Carrying counts the nodes that have anything that the rule added, and Holding the selected ones with its taint
	// and its record.
	Carrying, Holding int

	// ToAdd and ToRemove count the nodes whose taint would change if the rule were enforced, and Unreported those
	// without one of the conditions.
	ToAdd, ToRemove, Unreported int

	// Stuck counts the nodes that have been held longer than the rule's deadline.
	Stuck int
	// InUse, Away and Limited count, for a rule with maxUnavailable, the nodes in use, those of them that it holds, and
	// those that stay released only because maxUnavailable is reached.
	InUse, Away, Limited int
	// LimitedNodes are the names of those, up to the limit.
	LimitedNodes []string

	// Waiting counts the nodes by what the rule waits for other than its conditions.
	Waiting map[Cause]int

	// Until is when time alone can change the summary; zero: never.
	Until time.Time

	// Blocked counts held nodes per unmet requirement.
	Blocked map[string]int

	// Nodes are the selected nodes, held ones first, then by name, up to the limit.
	Nodes []NodeSummary
}

// NodeSummary is the state of a rule on one selected node.
type NodeSummary struct {
	Name    string
	State   State
	Tainted bool
	Settled bool
	// Limited means that it stays released only because of maxUnavailable.
	Limited      bool
	Observations []Observation
}

// Summarize evaluates one rule for all nodes, and lists at most limit of them.
func Summarize(rule *Rule, nodes iter.Seq[*Node], now time.Time, limit int) Summary {
	return summarize([]*Rule{rule}, nodes, now, limit)[0]
}

// Summaries returns those of all rules, oldest rule first. It evaluates all rules node by node, which is many times
// cheaper than rule by rule.
func (b *Rulebook) Summaries(nodes iter.Seq[*Node], now time.Time, limit int) []Summary {
	return summarize(b.rules, nodes, now, limit)
}

func summarize(rules []*Rule, nodes iter.Seq[*Node], now time.Time, limit int) []Summary {
	limits := limitsOf(rules, nodes, now)
	summaries, first := make([]Summary, len(rules)), make([]shortlist, len(rules))
	for i := range summaries {
		summaries[i].Blocked, first[i].limit = map[string]int{}, limit
	}
	for node := range nodes {
		for i, rule := range rules {
			var s Standing
			s.evaluate(rule, node, now)
			if limits.Hit(rule, node) {
				s.Limit()
			}
			summaries[i].count(&s, now)
			first[i].offer(&s)
		}
	}
	for i := range summaries {
		summaries[i].Nodes = first[i].summaries(now)
		slices.Sort(summaries[i].LimitedNodes)
		summaries[i].LimitedNodes = summaries[i].LimitedNodes[:min(limit, len(summaries[i].LimitedNodes))]
	}
	return summaries
}

func (s *Summary) count(on *Standing, now time.Time) {
	if on.facts.carries() {
		s.Carrying++
	}
	if !on.Settled() {
		s.Unsettled++
	}
	s.Until = earlier(s.Until, on.Until)
	if on.Tainted && on.State != Held && (on.Owned || on.State == Released && !on.Completed) {
		s.ToRemove++
	}
	if on.State != NotSelected {
		s.countSelected(on, now)
	}
}

func (s *Summary) countSelected(on *Standing, now time.Time) {
	s.Selected++
	s.countSafety(on)
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
	s.countConditions(on, now)
}

// countSafety counts what the optional fields of a rule add.
func (s *Summary) countSafety(on *Standing) {
	if on.Stuck {
		s.Stuck++
	}
	if on.Cause != "" {
		if s.Waiting == nil {
			s.Waiting = map[Cause]int{}
		}
		s.Waiting[on.Cause]++
	}
	if on.Rule.MaxUnavailable == nil || !on.facts.inUse() {
		return
	}
	s.InUse++
	if on.Tainted {
		s.Away++
	}
	if on.Cause == CauseLimit {
		s.Limited++
		s.LimitedNodes = append(s.LimitedNodes, on.facts.node.Name)
	}
}

func (s *Summary) countConditions(on *Standing, now time.Time) {
	unreported := false
	for i := range on.Rule.Requirements {
		requirement := &on.Rule.Requirements[i]
		current, missing := on.facts.condition(requirement, now).status, on.facts.node.condition(requirement.Type) == nil
		unreported = unreported || missing
		if on.Cause == "" && on.State == Held && current != requirement.RequiredStatus {
			s.Blocked[requirement.Type]++
		}
	}
	if unreported {
		s.Unreported++
	}
}

// shortlist keeps the first limit nodes that a rule selects, held ones first, then by name.
type shortlist struct {
	limit int
	list  []Standing
}

// offer adds the node to the list, unless limit other nodes come before it.
func (l *shortlist) offer(s *Standing) {
	switch full := len(l.list) == l.limit; {
	case s.State == NotSelected || l.limit == 0 || full && compareStandings(*s, l.list[l.limit-1]) >= 0:
		return
	case full:
		l.list = l.list[:l.limit-1]
	}
	i, _ := slices.BinarySearchFunc(l.list, *s, compareStandings)
	l.list = slices.Insert(l.list, i, *s)
}

func compareStandings(a, b Standing) int {
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
