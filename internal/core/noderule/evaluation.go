package noderule

import (
	"slices"
	"time"
)

// Evaluation is a node, decoded once for all rules, with the verdict of each. It is the value that flows from the
// watch to the PATCH: evaluate, apply limits, apply dependencies, plan.
type Evaluation struct {
	Node *Node
	// Verdicts are those of all rules, oldest rule first.
	Verdicts []Verdict

	now   time.Time
	rules []*Rule
	plan  Plan
}

// Evaluate returns the verdicts of all rules for the node at a time.
func (b *Rulebook) Evaluate(node *Node, now time.Time) *Evaluation {
	e := &Evaluation{Node: node, Verdicts: make([]Verdict, len(b.rules)), now: now, rules: b.rules}
	for i, rule := range b.rules {
		e.Verdicts[i].evaluate(rule, node, now)
		e.Verdicts[i].explain(now)
	}
	return e
}

// ApplyDependencies applies dependsOn after limits are applied: a verdict waits for a rule that it depends on and that now
// holds a node in use. A rule in dry run does not count. It returns the indexes of the verdicts that it changed.
func (e *Evaluation) ApplyDependencies() []int {
	var changed []int
	for i := range e.Verdicts {
		v := &e.Verdicts[i]
		if v.State == NotSelected || v.Completed || v.Cause == CauseDependency || len(v.Rule.after) == 0 {
			continue
		}
		first := slices.IndexFunc(e.Verdicts, func(other Verdict) bool {
			return other.Rule.Active() && other.Takes() && slices.Contains(v.Rule.after, other.Rule)
		})
		if first < 0 {
			continue
		}
		*v = Verdict{Rule: v.Rule, State: v.facts.whileWaiting(v.State), Cause: CauseDependency, WaitsFor: e.Verdicts[first].Rule, facts: v.facts}
		changed = append(changed, i)
	}
	return changed
}

// Plan returns the change that the verdicts require. It is called once, after limits and dependencies. A record of any
// other rule belongs to a rule that does not exist, and is removed if the list has that rule with that taint.
func (e *Evaluation) Plan(listed RuleTaints) *Plan {
	p := planner{node: e.Node, rules: e.rules, listed: listed, now: e.now, evaluation: e}
	p.run()
	e.plan = p.plan
	return &e.plan
}

// ApplyLimits limits the verdicts that maxUnavailable leaves released, according to the states of all nodes.
func (e *Evaluation) ApplyLimits(limits Limits) {
	for i := range e.Verdicts {
		if limits.Hit(e.Verdicts[i].Rule, e.Node) {
			e.Verdicts[i].Limit()
		}
	}
}
