package noderule

import (
	"iter"
	"slices"
	"strings"
	"time"
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

	// Stuck counts the nodes that have been held longer than the rule's deadline.
	Stuck int
	// InUse, Away and Limited count for a rule with maxUnavailable the nodes in use, those of
	// them that it holds, and those that stay released only because as many are away as may be.
	InUse, Away, Limited int
	// LimitedNodes are the names of those; at most as many as were asked for.
	LimitedNodes []string

	// Waiting counts the nodes for which the rule waits for something else than its conditions.
	Waiting map[Cause]int

	// Until is when time alone can change the summary; zero: never.
	Until time.Time

	// Blocked counts held nodes for each requirement that holds them back.
	Blocked map[string]int

	// Nodes are the selected nodes, held ones first, then by name; at most as many as were
	// asked for.
	Nodes []NodeSummary
}

// NodeSummary is a rule's standing on one selected node.
type NodeSummary struct {
	Name    string
	State   State
	Tainted bool
	Settled bool
	// Limited says that it is left released only because of maxUnavailable.
	Limited      bool
	Observations []Observation
}

// Summarize looks at all nodes with the eyes of one rule and names at most limit of them.
func Summarize(rule *Rule, nodes iter.Seq[*Node], now time.Time, limit int) Summary {
	return summarize([]*Rule{rule}, nodes, now, limit)[0]
}

// Summaries are those of all rules, oldest rule first. Each node is looked at once, with the
// eyes of all rules while it is at hand: that is many times cheaper than rule by rule.
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
			s := standOn(rule, node, now)
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

func (s *Summary) count(on *standingOn, now time.Time) {
	if on.Owned || carriesMore(on.Rule, on.node) {
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

func (s *Summary) countSelected(on *standingOn, now time.Time) {
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

// countSafety counts what the optional fields of a rule are about.
func (s *Summary) countSafety(on *standingOn) {
	if on.Stuck {
		s.Stuck++
	}
	if on.Cause != "" {
		if s.Waiting == nil {
			s.Waiting = map[Cause]int{}
		}
		s.Waiting[on.Cause]++
	}
	if on.Rule.MaxUnavailable == nil || !inUse(on.Rule, on.node) {
		return
	}
	s.InUse++
	if on.Tainted {
		s.Away++
	}
	if on.Cause == CauseLimit {
		s.Limited++
		s.LimitedNodes = append(s.LimitedNodes, on.node.Name)
	}
}

func (s *Summary) countConditions(on *standingOn, now time.Time) {
	unreported := false
	var rec record
	if on.Rule.timed {
		rec = recall(on.Rule, on.node)
	}
	for i := range on.Rule.Requirements {
		requirement := &on.Rule.Requirements[i]
		current, missing := look(requirement, on.node, &rec, now).status, on.node.condition(requirement.Type) == nil
		unreported = unreported || missing
		if on.Cause == "" && on.State == Held && current != requirement.RequiredStatus {
			s.Blocked[requirement.Type]++
		}
	}
	if unreported {
		s.Unreported++
	}
}

// Carries says whether the node carries something that the rule put there.
func Carries(rule *Rule, node *Node) bool { return owns(rule, node) || carriesMore(rule, node) }

// carriesMore says whether the node carries something of the rule besides its record.
func carriesMore(rule *Rule, node *Node) bool {
	return rule.inherits(node) || has(node.Annotations, rule.completedKey) || has(node.Annotations, rule.memoryKey)
}

// inherits says whether the node carries the taint of a rule that was deleted before
// Readygate first saw it. Another controller put it there, without a record.
func (r *Rule) inherits(node *Node) bool {
	return r.Inherited && r.Selects(node) && node.Has(r.ID())
}

// owns says whether the node carries the rule's record of ownership. A record that names another
// taint is not the rule's; one that cannot be read is.
func owns(rule *Rule, node *Node) bool {
	value, ok := node.Annotations[rule.holdKey]
	if !ok || strings.Contains(value, rule.recordTaint) {
		return ok
	}
	named := claimIn(rule.holdKey, rule.UID, value).taint
	return named == TaintID{} || named == rule.ID()
}
