package noderule

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Takes reports whether holding the node removes a node in use, for a rule with maxUnavailable.
func Takes(rule *Rule, node *Node) bool {
	if rule.MaxUnavailable == nil {
		return false
	}
	f := factsOf(rule, node)
	return f.takes()
}

// Quota counts the nodes in use that one rule holds, against its maxUnavailable. It is updated with every change of a
// node, and does not depend on time. It is not safe for concurrent use.
type Quota struct {
	rule *Rule
	used map[string]bool  // nodes in use
	away map[string]count // those of them that count as held
	want []string         // those that are to be held, in order
	// offered are those of them that Offer has returned.
	offered map[string]bool
}

// count is why a node counts as held.
type count int

const (
	// granted: the manager may hold it, and perhaps has; no state of the node shows it yet.
	granted count = iota
	// seen: a state of the node shows it.
	seen
)

// NewQuota returns the quota of a rule with maxUnavailable.
func NewQuota(rule *Rule) *Quota {
	return &Quota{rule: rule, used: map[string]bool{}, away: map[string]count{}, offered: map[string]bool{}}
}

// Observe updates the quota with a state of a node that is newer than the previous one, and its verdict. A node with the
// taint counts, whatever added the taint; and a granted node counts until a state shows it.
func (q *Quota) Observe(node *Node, now time.Time) {
	f := factsOf(q.rule, node)
	q.observe(&f, f.evaluate(now).state == Held && f.takes())
}

func (q *Quota) observe(f *facts, wants bool) {
	name, tainted, used := f.node.Name, f.tainted(), f.inUse()
	counts := used && f.selected
	switch was, away := q.away[name]; {
	case tainted && (counts || away || used && f.owned()):
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

// Inherit copies what another quota of the same rule granted and has not observed yet.
func (q *Quota) Inherit(other *Quota) {
	if other == nil {
		return
	}
	for node, why := range other.away {
		if _, away := q.away[node]; why == granted && !away {
			q.away[node], q.used[node] = granted, true
		}
	}
}

// Forget removes a node that does not exist anymore.
func (q *Quota) Forget(node string) {
	delete(q.used, node)
	delete(q.away, node)
	q.Want(node, false)
}

// Want records whether a node is to be held.
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

// Take reports whether a node that is wanted may be held, and counts it then, until a state of the node shows it or Return.
// Of the nodes that wait the first by name may.
func (q *Quota) Take(node string) bool {
	if _, away := q.away[node]; away {
		return len(q.away) <= q.Limit() // it counts already
	}
	if !slices.Contains(q.Next(), node) {
		return false
	}
	q.away[node] = granted
	return true
}

// Grant counts a node as held until a state of it shows that, or Return.
func (q *Quota) Grant(node string) {
	if _, away := q.away[node]; !away {
		q.away[node], q.used[node] = granted, true
	}
}

// Uses reports whether a node counts as in use.
func (q *Quota) Uses(node string) bool { return q.used[node] }

// Counts reports whether a node counts as held.
func (q *Quota) Counts(node string) bool {
	_, away := q.away[node]
	return away
}

// Return removes the grant of a node that is not held and will not be.
func (q *Quota) Return(node string) {
	if why, away := q.away[node]; away && why == granted {
		delete(q.away, node)
		delete(q.offered, node)
	}
}

// Offer returns the nodes that may be held now and that it has not returned before.
func (q *Quota) Offer() []string {
	offer := slices.DeleteFunc(q.Next(), func(node string) bool { return q.offered[node] })
	for _, node := range offer {
		q.offered[node] = true
	}
	return offer
}

// Next are the nodes that may be held now, by name.
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

// Limits returns those of all rules, from the states of all nodes alone.
func (b *Rulebook) Limits(nodes iter.Seq[*Node], now time.Time) Limits {
	return limitsOf(b.rules, nodes, now)
}

func limitsOf(rules []*Rule, nodes iter.Seq[*Node], now time.Time) Limits {
	var limits Limits
	for _, rule := range rules {
		if rule.MaxUnavailable == nil || !rule.hasVerdicts() {
			continue
		}
		quota := NewQuota(rule)
		for node := range nodes {
			quota.Observe(node, now)
		}
		if limits == nil {
			limits = Limits{}
		}
		limits[rule] = quota.limited()
	}
	return limits
}

// Hit reports whether the rule leaves the node released only because of maxUnavailable.
func (l Limits) Hit(rule *Rule, node *Node) bool { return l[rule][node.Name] }

// limited are the nodes that wait and may not be held now.
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

// Limit is how many nodes in use may be held.
func (q *Quota) Limit() int { return q.rule.maxHeld(len(q.used)) }

// maxHeld is maxUnavailable as a number of nodes, of this many in use.
func (r *Rule) maxHeld(used int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, used, true)
	if err != nil {
		return 0 // the CRD rejects it
	}
	return max(0, n)
}
