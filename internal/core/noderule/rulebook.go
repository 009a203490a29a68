package noderule

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Rulebook is all compiled rules, oldest first, with conflicts resolved. It does not depend on the order in which the
// rules were given.
type Rulebook struct {
	rules []*Rule
	byUID map[types.UID]*Rule
	// timed means that some rule depends on heartbeats, boots or whether nodes are Ready.
	timed bool

	// Listed are the taints of all rules, also of rules that do not exist anymore: Plan removes what those left. Nil: it
	// removes none.
	Listed RuleTaints

	// Number orders the rulebooks of one cache: a later one has a larger number. Zero: no order.
	Number int
}

// NewRulebook compiles the rules.
//
// Two rules with the same taint and selectors that can overlap conflict: the older one (creation time, then UID) is
// enforced, the other has a Problem. A rule that is being deleted or in dry run does not conflict, nor does one that
// already has a Problem.
func NewRulebook(objs []*v1alpha1.NodeReadinessRule) *Rulebook {
	book := &Rulebook{rules: make([]*Rule, 0, len(objs)), byUID: make(map[types.UID]*Rule, len(objs))}
	for _, obj := range objs {
		rule := compile(obj)
		book.rules = append(book.rules, rule)
		book.byUID[rule.UID] = rule
		book.timed = book.timed || rule.timed || rule.MaxUnavailable != nil
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
		if rule.dryRun() {
			rule.Rival = firstOverlapping(winners[rule.ID()], rule)
		}
	}
	return book
}

// Withdrawn returns the rulebook of the same rules when they are not enforced anymore: they stay and hold no node, so a
// plan removes everything that they own on nodes. Unlike deleted rules they keep completion records: the next
// controller must not hold a completed node again.
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
		Message: fmt.Sprintf("rule %q %s and manages the taint %s on nodes that this rule can select too, so this rule has no effect: "+
			"use another taint or a selector that excludes its nodes, or delete one of the two rules", winner.Name, age, winner.ID()),
	}
}

// Rules returns all rules, oldest first.
func (b *Rulebook) Rules() []*Rule { return b.rules }

// Taints returns the taints of all rules.
func (b *Rulebook) Taints() RuleTaints {
	taints := make(RuleTaints, len(b.rules))
	for _, rule := range b.rules {
		taints[rule.UID] = rule.ID()
	}
	return taints
}

// Rule returns the rule with this UID; nil if there is none.
func (b *Rulebook) Rule(uid types.UID) *Rule { return b.byUID[uid] }

// Plan returns the change of the node that all rules require, without limits on the number of held nodes. It is a value
// and small enough to be inlined: a caller that only reads it needs no allocation.
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
