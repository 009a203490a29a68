package noderule

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Takes says whether carrying the verdict out takes a node away that is in use, of a rule that
// limits how many those may be. One that only previews previews that, too.
func (v *Verdict) Takes(node *Node) bool {
	return v.State == Held && takes(v.Rule, node)
}

// takes says whether holding the node takes one away that is in use, of a rule that limits that.
func takes(rule *Rule, node *Node) bool {
	return rule.MaxUnavailable != nil && !node.Has(rule.ID()) && inUse(rule, node)
}

// Limit is the verdict if the rule may not take the node away now: it stays released.
func (v *Verdict) Limit() {
	v.State, v.Cause, v.Stuck = Released, CauseLimit, false
}

// Quota is how many nodes in use one rule takes away, of those that it may. It is fed with every
// change of a node, and does not look at clocks. It is not safe for concurrent use.
type Quota struct {
	rule *Rule
	used map[string]bool // nodes in use
	away map[string]hand // those that are taken away
	want []string        // those that are to be taken away, in order
	// offered are those of them that somebody was told of.
	offered map[string]bool
}

// hand is how a node came to be away.
type hand int

const (
	// granted: it may be taken, and perhaps has been; no state of the node shows it yet.
	granted hand = iota
	// seen: a state of the node showed it.
	seen
)

// NewQuota makes a quota of a rule with maxUnavailable.
func NewQuota(rule *Rule) *Quota {
	return &Quota{rule: rule, used: map[string]bool{}, away: map[string]hand{}, offered: map[string]bool{}}
}

// See takes a state of a node in that is newer than those of before. Wants says that the rule
// would take it away. Who carries the taint is away, whoever put it there and whatever else has
// changed; and what was granted counts until a state shows it.
func (q *Quota) See(node *Node, wants bool) {
	name, tainted, used := node.Name, node.Has(q.rule.ID()), inUse(q.rule, node)
	counts := used && q.rule.Selects(node)
	switch was, away := q.away[name]; {
	case tainted && (counts || away || used && owns(q.rule, node)):
		q.away[name] = seen
	case away && was == seen:
		delete(q.away, name)
	}
	if _, away := q.away[name]; counts || away {
		q.used[name] = true
	} else {
		delete(q.used, name)
	}
	q.Want(name, counts && wants && !tainted)
}

// Inherit takes over what another quota of the same rule granted and has not seen yet.
func (q *Quota) Inherit(other *Quota) {
	if other == nil {
		return
	}
	for node, hand := range other.away {
		if _, away := q.away[node]; hand == granted && !away {
			q.away[node], q.used[node] = granted, true
		}
	}
}

// Forget drops a node that is gone.
func (q *Quota) Forget(node string) {
	delete(q.used, node)
	delete(q.away, node)
	q.Want(node, false)
}

// Want says whether a node is to be taken away.
func (q *Quota) Want(node string, wants bool) {
	i, queued := slices.BinarySearch(q.want, node)
	switch {
	case wants && !queued:
		q.want = slices.Insert(q.want, i, node)
	case !wants && queued:
		q.want = slices.Delete(q.want, i, i+1)
		delete(q.offered, node)
	}
}

// Take asks to take a node away that is wanted. Of those that wait the first by
// name may. What it grants counts until a state of the node shows it, or Return.
func (q *Quota) Take(node string) bool {
	if _, away := q.away[node]; away {
		return len(q.away) <= q.Limit() // it is one of them already
	}
	if !slices.Contains(q.Next(), node) {
		return false
	}
	q.away[node] = granted
	return true
}

// Grant counts a node as away until a state of it shows that, or Return.
func (q *Quota) Grant(node string) {
	if _, away := q.away[node]; !away {
		q.away[node], q.used[node] = granted, true
	}
}

// Uses says whether a node counts as one in use.
func (q *Quota) Uses(node string) bool { return q.used[node] }

// Counts says whether a node counts as away.
func (q *Quota) Counts(node string) bool {
	_, away := q.away[node]
	return away
}

// Return says that a node that was granted has not been taken away, and will not be.
func (q *Quota) Return(node string) {
	if hand, away := q.away[node]; away && hand == granted {
		delete(q.away, node)
		delete(q.offered, node)
	}
}

// Offer are the nodes that may be taken away now and that nobody was told of yet.
func (q *Quota) Offer() []string {
	offer := slices.DeleteFunc(q.Next(), func(node string) bool { return q.offered[node] })
	for _, node := range offer {
		q.offered[node] = true
	}
	return offer
}

// Next are the nodes that may be taken away now, by name.
func (q *Quota) Next() []string {
	room := q.Limit() - len(q.away)
	var next []string
	for _, node := range q.want {
		if len(next) >= room {
			break
		}
		if _, away := q.away[node]; !away {
			next = append(next, node)
		}
	}
	return next
}

// Limits are the nodes that rules leave released only because of maxUnavailable.
type Limits map[*Rule]map[string]bool

// Limits are those of all rules, from the states of all nodes alone.
func (b *Rulebook) Limits(nodes iter.Seq[*Node], now time.Time) Limits {
	return limitsOf(b.rules, nodes, now)
}

func limitsOf(rules []*Rule, nodes iter.Seq[*Node], now time.Time) Limits {
	var limits Limits
	for _, rule := range rules {
		if rule.MaxUnavailable == nil || !rule.speaks() {
			continue
		}
		quota := NewQuota(rule)
		for node := range nodes {
			verdict := Verdict{Rule: rule, State: judge(rule, node, now).state}
			quota.See(node, verdict.Takes(node))
		}
		if limits == nil {
			limits = Limits{}
		}
		limits[rule] = quota.limited()
	}
	return limits
}

// Hit says whether the rule leaves the node released only because of maxUnavailable.
func (l Limits) Hit(rule *Rule, node *Node) bool { return l[rule][node.Name] }

// limited are the nodes that wait and may not be taken away now.
func (q *Quota) limited() map[string]bool {
	limited := map[string]bool{}
	for _, node := range q.want {
		limited[node] = true
	}
	for _, node := range q.Next() {
		delete(limited, node)
	}
	return limited
}

// Limit is how many nodes in use may be away.
func (q *Quota) Limit() int { return q.rule.mayTake(len(q.used)) }

// mayTake is how many of so many nodes in use the rule may take away.
func (r *Rule) mayTake(used int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, used, true)
	if err != nil {
		return 0 // the CRD refuses it
	}
	return max(0, n)
}
