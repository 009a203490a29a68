package readiness

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Plan is the change of one node that the verdicts of all rules ask for. Applied once, it
// leaves nothing to plan. It keeps every taint and annotation that is not ours.
type Plan struct {
	// Taints is the whole list that the node is to have.
	Taints []corev1.Taint
	// TaintsChanged says that Taints differs from what the node has.
	TaintsChanged bool
	// Set and Remove are annotations to write and to delete.
	Set    map[string]string
	Remove []string
	// Changes say what the plan does and for which rule, in a stable order.
	Changes []Change
	// Swept are the rules of which something is swept because they are not among the rules.
	// Whoever applies the plan must be sure that they do not exist: it cannot be undone.
	Swept []types.UID
}

// ChangeKind is a kind of Change.
type ChangeKind string

// What a plan does for a rule.
const (
	// Added: the rule's taint is put on the node.
	Added ChangeKind = "Added"
	// Removed: the rule's taint is taken off the node.
	Removed ChangeKind = "Removed"
	// Adopted: the rule's taint was there before, and the rule now owns it.
	Adopted ChangeKind = "Adopted"
	// Completed: a bootstrap-only rule is done with the node.
	Completed ChangeKind = "Completed"
	// Forgotten: what the node remembers of the rule is deleted, and no taint is.
	Forgotten ChangeKind = "Forgotten"
)

// Change is one thing that a plan does, and the rule for which it does it.
type Change struct {
	Kind  ChangeKind
	Rule  string
	UID   types.UID
	Taint TaintID
}

// Empty says that there is nothing to do.
func (p *Plan) Empty() bool { return !p.TaintsChanged && len(p.Set) == 0 && len(p.Remove) == 0 }

// Apply is the node as it will be.
func (p *Plan) Apply(node *Node) *Node {
	applied := *node
	applied.Taints = p.Taints
	if len(p.Set) > 0 || len(p.Remove) > 0 {
		applied.Annotations = map[string]string{}
		maps.Copy(applied.Annotations, node.Annotations)
		maps.Copy(applied.Annotations, p.Set)
		for _, key := range p.Remove {
			delete(applied.Annotations, key)
		}
	}
	return &applied
}

// PlanFor is the change that the verdicts ask for. They must be the verdicts of all rules:
// a record of any other rule is of one that is gone, and is swept.
func PlanFor(node *Node, verdicts []Verdict, now time.Time) *Plan {
	p := planner{node: node, now: now, wanted: map[TaintID]bool{}}
	rules := make(map[types.UID]bool, len(verdicts))
	names := make(map[string]bool, len(verdicts))
	for _, v := range verdicts {
		rules[v.Rule.UID], names[v.Rule.Name] = true, true
		if v.Rule.Active() && v.State == Held {
			p.wanted[v.Rule.ID()] = true
		}
	}
	p.plan.Taints = slices.Clone(node.Taints)
	for _, v := range verdicts {
		p.settle(v)
	}
	p.sweep(rules, names)
	slices.Sort(p.plan.Remove)
	return &p.plan
}

// Disown is the plan that forgets who put which taint on the node, and leaves the taints: they
// are somebody else's from now on.
func Disown(node *Node) *Plan {
	p := planner{node: node, plan: Plan{Taints: node.Taints}}
	for _, key := range slices.Sorted(maps.Keys(node.Annotations)) {
		if uid, ok := holderOf(key); ok {
			p.remove(key, claimIn(key, uid, node.Annotations[key]))
		}
	}
	return &p.plan
}

// planner gathers one plan.
type planner struct {
	node   *Node
	now    time.Time
	wanted map[TaintID]bool
	plan   Plan
}

// claim is a rule's claim to a taint: of a rule that exists, or of one that left a record.
type claim struct {
	rule   string
	uid    types.UID
	taint  TaintID
	record string // key of the annotation
}

func claimOf(rule *Rule) claim {
	return claim{rule: rule.Name, uid: rule.UID, taint: rule.ID(), record: rule.holdKey}
}

func (p *planner) settle(v Verdict) {
	switch {
	case v.Rule.frozen() && bornLate(v.Rule, p.node):
		p.takeBack(claimOf(v.Rule))
	case v.Rule.frozen():
	case !v.Rule.Active() || v.State == NotSelected || v.Completed:
		p.letGo(v.Rule)
	case v.State == Held:
		p.hold(v.Rule)
	case v.State == Released:
		p.release(v.Rule)
	}
}

func (p *planner) hold(rule *Rule) {
	switch {
	case !p.has(rule.ID()):
		p.plan.Taints = append(p.plan.Taints, rule.Taint)
		p.plan.TaintsChanged = true
		p.set(recordOf(rule, OriginAdded, p.now))
		p.change(Added, claimOf(rule))
	case !owns(rule, p.node):
		p.set(recordOf(rule, OriginAdopted, p.now))
		p.change(Adopted, claimOf(rule))
	}
}

func (p *planner) release(rule *Rule) {
	p.takeBack(claimOf(rule))
	if rule.Bootstrap {
		p.set(completion(rule))
		p.change(Completed, claimOf(rule))
	}
}

// letGo takes back what a rule put on a node that it does not speak of, or is done with. A
// rule that is being deleted also takes its memory along.
func (p *planner) letGo(rule *Rule) {
	if owns(rule, p.node) || rule.inherits(p.node) {
		p.takeBack(claimOf(rule))
	}
	if rule.Deleting {
		p.remove(rule.completedKey, claimOf(rule))
	}
}

// sweep takes back what rules left that no longer exist. A completion of the older form
// ends in a rule's name, which may look like a UID.
func (p *planner) sweep(rules map[types.UID]bool, names map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(p.node.Annotations)) {
		value := p.node.Annotations[key]
		if uid, ok := holderOf(key); ok && !rules[uid] {
			p.plan.Swept = append(p.plan.Swept, uid)
			p.takeBack(claimIn(key, uid, value))
		}
		if uid, ok := completionOf(key, value); ok && !rules[uid] && !names[string(uid)] {
			p.plan.Swept = append(p.plan.Swept, uid)
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
}

// takeBack removes a taint and the record of it.
func (p *planner) takeBack(c claim) {
	p.drop(c)
	p.remove(c.record, c)
}

// drop takes the taint off, unless some rule wants it there or no rule may manage it: a rule
// that was stored under another CRD, or a forged record, can name any taint.
func (p *planner) drop(c claim) {
	if p.wanted[c.taint] || !c.taint.managed() || !p.has(c.taint) {
		return
	}
	p.plan.Taints = slices.DeleteFunc(p.plan.Taints, func(t corev1.Taint) bool { return idOf(t) == c.taint })
	p.plan.TaintsChanged = true
	p.change(Removed, c)
}

// remove deletes an annotation, if it is there. Every rule that the plan serves has a change
// in it, be it only this one.
func (p *planner) remove(key string, c claim) {
	if !has(p.node.Annotations, key) {
		return
	}
	p.plan.Remove = append(p.plan.Remove, key)
	if !slices.ContainsFunc(p.plan.Changes, func(change Change) bool { return change.UID == c.uid }) {
		p.change(Forgotten, c)
	}
}

func (p *planner) set(key, value string) {
	if p.plan.Set == nil {
		p.plan.Set = map[string]string{}
	}
	p.plan.Set[key] = value
}

func (p *planner) change(kind ChangeKind, c claim) {
	p.plan.Changes = append(p.plan.Changes, Change{Kind: kind, Rule: c.rule, UID: c.uid, Taint: c.taint})
}

// has says whether the plan so far leaves the taint on the node.
func (p *planner) has(id TaintID) bool {
	return slices.ContainsFunc(p.plan.Taints, func(t corev1.Taint) bool { return idOf(t) == id })
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
