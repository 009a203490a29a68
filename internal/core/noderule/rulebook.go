package noderule

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Rulebook is all rules, compiled, oldest first, with their conflicts settled. It does not
// depend on the order in which the rules were given.
type Rulebook struct {
	rules []*Rule
	byUID map[types.UID]*Rule
	// watchful says that some rule looks at heartbeats, at boots or at whether nodes are Ready.
	watchful bool

	// Listed are the taints of all rules, also of rules that are gone: Plan sweeps what those left.
	// Nil: it sweeps no hold.
	Listed RuleTaints

	// Number orders books of one maker: a later one has a larger number. Zero: no order.
	Number int
}

// NewRulebook compiles the rules.
//
// Two rules that manage the same taint on selectors that can overlap are in conflict: the
// older one (creation time, then UID) takes part, the other gets a Problem. A rule that is
// being deleted or only previews conflicts with nobody, and so does one that has lost.
func NewRulebook(objs []*v1alpha1.NodeReadinessRule) *Rulebook {
	book := &Rulebook{rules: make([]*Rule, 0, len(objs)), byUID: make(map[types.UID]*Rule, len(objs))}
	for _, obj := range objs {
		rule := compile(obj)
		book.rules = append(book.rules, rule)
		book.byUID[rule.UID] = rule
		book.watchful = book.watchful || rule.timed || rule.MaxUnavailable != nil
	}
	slices.SortFunc(book.rules, older)

	book.order()
	winners := map[TaintID][]*Rule{}
	for _, rule := range book.rules {
		if !rule.Active() {
			continue
		}
		if winner := firstOverlapping(winners[rule.ID()], rule); winner != nil {
			rule.Problem = conflict(winner, rule)
			continue
		}
		winners[rule.ID()] = append(winners[rule.ID()], rule)
	}
	for _, rule := range book.rules {
		if rule.frozen() {
			rule.Rival = firstOverlapping(winners[rule.ID()], rule)
		}
	}
	return book
}

// Withdrawn is the rulebook of the same rules when nobody enforces them any more: they stay
// and demand nothing, so a plan takes back all that they own on nodes. Unlike rules that are
// deleted they keep their memory: whoever enforces them next, a node that has completed
// must not be held again.
func (b *Rulebook) Withdrawn() *Rulebook {
	book := &Rulebook{rules: make([]*Rule, len(b.rules)), byUID: make(map[types.UID]*Rule, len(b.rules)), Listed: b.Listed}
	for i, rule := range b.rules {
		withdrawn := *rule
		withdrawn.Withdrawn, withdrawn.Rival = true, nil
		withdrawn.after = nil
		book.rules[i], book.byUID[rule.UID] = &withdrawn, &withdrawn
	}
	return book
}

func firstOverlapping(rules []*Rule, rule *Rule) *Rule {
	for _, other := range rules {
		if other.reach.overlaps(rule.reach) {
			return other
		}
	}
	return nil
}

func conflict(winner, loser *Rule) *Problem {
	age := "is older"
	if winner.Created.Equal(loser.Created) {
		age = "is as old and has the smaller UID,"
	}
	return &Problem{
		Reason: v1alpha1.ReasonConflict,
		Message: fmt.Sprintf("rule %q %s and manages the taint %s on nodes that this rule can select too, so this rule does nothing: "+
			"use another taint or a selector that excludes its nodes, or delete one of the two rules", winner.Name, age, winner.ID()),
	}
}

// Rules are all rules, oldest first.
func (b *Rulebook) Rules() []*Rule { return b.rules }

// Taints are the taints of all rules of the book.
func (b *Rulebook) Taints() RuleTaints {
	taints := make(RuleTaints, len(b.rules))
	for _, rule := range b.rules {
		taints[rule.UID] = rule.ID()
	}
	return taints
}

// Rule is the rule with this UID, nil if there is none.
func (b *Rulebook) Rule(uid types.UID) *Rule { return b.byUID[uid] }

// Verdicts are the answers of all rules for the node at a time, oldest rule first.
func (b *Rulebook) Verdicts(node *Node, now time.Time) []Verdict {
	verdicts := make([]Verdict, len(b.rules))
	for i, rule := range b.rules {
		verdicts[i] = Evaluate(rule, node, now)
	}
	return verdicts
}

// Plan is what all rules together ask to be changed on the node, as if no rule limited how many
// nodes it takes away. It is made as a value and is small enough to be inlined: whoever only
// looks at it needs no allocation.
func (b *Rulebook) Plan(node *Node, now time.Time) *Plan {
	plan := b.plan(node, now)
	return &plan
}

//go:noinline
func (b *Rulebook) plan(node *Node, now time.Time) Plan {
	p := planner{node: node, rules: b.rules, listed: b.Listed, now: now}
	p.run()
	return p.plan
}
