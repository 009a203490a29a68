package noderule

import (
	"slices"
	"time"
)

// Standing is how a rule stands with a node: its verdict, and what of it is there.
type Standing struct {
	Verdict

	// Tainted says that the node carries the rule's taint, whoever put it there.
	Tainted bool
	// Owned says that the node carries the rule's record of ownership.
	Owned bool
}

// Stand looks at the node with the eyes of the rule.
func Stand(rule *Rule, node *Node, now time.Time) Standing {
	return Standing{Verdict: Evaluate(rule, node, now), Tainted: node.Has(rule.ID()), Owned: owns(rule, node)}
}

// Holding says that the node carries the taint because of the rule.
func (s Standing) Holding() bool { return s.Tainted && s.Owned }

// Settled says that the node is as the rule wants it.
func (s Standing) Settled() bool {
	switch s.Cause {
	case CauseDependency:
		return s.State != Held || s.Holding()
	case CauseLimit:
		return !s.Owned
	}
	switch s.State {
	case Held:
		return s.Holding()
	case Released:
		return !s.Owned && (s.Completed || !s.Tainted && !s.Rule.Bootstrap)
	default:
		return !s.Owned
	}
}

// Hold is what a rule's record on a node tells.
type Hold struct {
	Origin Origin
	// Since is when the hold began; zero if nobody knows: admission has no clock.
	Since time.Time
}

// HoldOf is what the rule's record on the node tells, if there is one.
func HoldOf(rule *Rule, node *Node) (Hold, bool) {
	r, ok := readRecord(node.Annotations[rule.holdKey])
	if !ok {
		return Hold{}, false
	}
	return Hold{Origin: r.Origin, Since: r.since(node)}, true
}

// HasCompletion says whether the node remembers that the rule released it, be it in another boot.
func HasCompletion(rule *Rule, node *Node) bool {
	return has(node.Annotations, rule.completedKey) || has(node.Annotations, rule.olderCompletedKey)
}

// MadeBy says whether the transition of a condition at this time is what made the verdict: not the
// end of a wait, a heartbeat, a silence, a boot or a deadline.
func MadeBy(transition time.Time, v *Verdict, node *Node) bool {
	hold, held := HoldOf(v.Rule, node)
	switch {
	case v.Cause != "" || v.State == Released && v.Rule.MinReady > 0:
		return false
	case v.State == Released && held:
		return !transition.Before(hold.Since.Truncate(time.Second))
	}
	return !slices.ContainsFunc(v.Unmet, func(o Observation) bool { return o.Doubt != "" })
}
