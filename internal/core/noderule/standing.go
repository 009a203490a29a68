package noderule

import (
	"slices"
	"time"
)

// Standing is a rule's verdict for a node, and what of it the node has.
type Standing struct {
	Verdict

	// Tainted means that the node has the rule's taint, whatever added it.
	Tainted bool
	// Owned means that the node has the rule's ownership record.
	Owned bool
}

// Stand evaluates the rule for the node, and compares the verdict with the node.
func Stand(rule *Rule, node *Node, now time.Time) Standing {
	var f facts
	f.decode(rule, node)
	return Standing{Verdict: f.verdict(f.evaluate(now), now), Tainted: f.tainted(), Owned: f.owned()}
}

// Holding reports whether the node has the taint because of the rule.
func (s Standing) Holding() bool { return s.Tainted && s.Owned }

// Settled reports whether the node is as the verdict requires.
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

// CausedBy reports whether the transition of a condition at this time caused the verdict, and not the end of a wait, a
// heartbeat, its absence, a boot or a deadline.
func CausedBy(transition time.Time, v *Verdict, node *Node) bool {
	hold, held := HoldOf(v.Rule, node)
	switch {
	case v.Cause != "" || v.State == Released && v.Rule.MinReady > 0:
		return false
	case v.State == Released && held:
		return !transition.Before(hold.Since.Truncate(time.Second))
	}
	return !slices.ContainsFunc(v.Unmet, func(o Observation) bool { return o.UnknownReason != "" })
}
