package readiness

import (
	"encoding/json"
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
func Stand(rule *Rule, node *Node) Standing {
	return Standing{Verdict: Evaluate(rule, node), Tainted: node.Has(rule.ID()), Owned: owns(rule, node)}
}

// Holding says that the node carries the taint because of the rule.
func (s Standing) Holding() bool { return s.Tainted && s.Owned }

// Settled says that the node is as the rule wants it.
func (s Standing) Settled() bool {
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
	var r record
	if !owns(rule, node) || json.Unmarshal([]byte(node.Annotations[rule.holdKey]), &r) != nil {
		return Hold{}, false
	}
	hold := Hold{Origin: r.Origin}
	if r.Origin == OriginBorn {
		hold.Since = node.Created
	} else if since, err := time.Parse(time.RFC3339, r.Since); err == nil {
		hold.Since = since
	}
	return hold, true
}
