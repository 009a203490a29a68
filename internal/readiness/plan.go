package readiness

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
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
	p := planner{node: node, now: now, records: map[types.UID]Record{}, wanted: map[TaintID]bool{}}
	for key, value := range node.Annotations {
		if record, ok := parseRecord(key, value); ok {
			p.records[record.RuleUID] = record
		}
	}
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

// planner gathers one plan.
type planner struct {
	node    *Node
	now     time.Time
	records map[types.UID]Record
	wanted  map[TaintID]bool
	plan    Plan
}

func (p *planner) settle(v Verdict) {
	switch {
	case v.Rule.frozen():
	case !v.Rule.Active() || v.State == NotSelected || v.Completed:
		p.letGo(v.Rule)
	case v.State == Held:
		p.hold(v.Rule)
	case v.State == Released:
		p.release(v)
	}
}

func (p *planner) hold(rule *Rule) {
	_, owned := p.records[rule.UID]
	record := Record{RuleUID: rule.UID, Rule: rule.Name, Taint: rule.ID(), Since: p.now}
	switch {
	case !p.has(rule.ID()):
		record.Origin = OriginAdded
		p.plan.Taints = append(p.plan.Taints, rule.Taint)
		p.plan.TaintsChanged = true
		p.change(Added, rule.Name, rule.UID, rule.ID())
	case !owned:
		record.Origin = OriginAdopted
		p.change(Adopted, rule.Name, rule.UID, rule.ID())
	default:
		return
	}
	p.set(record.annotation())
}

func (p *planner) release(v Verdict) {
	p.drop(v.Rule.Name, v.Rule.UID, v.Rule.ID())
	p.forget(v.Rule.Name, v.Rule.UID, v.Rule.ID())
	if v.Rule.Bootstrap {
		p.set(completion(v.Rule))
		p.change(Completed, v.Rule.Name, v.Rule.UID, v.Rule.ID())
	}
}

// letGo takes back what a rule put on a node that it does not speak of, or is done with. A
// rule that is being deleted also takes its memory along.
func (p *planner) letGo(rule *Rule) {
	if owns(rule, p.node) || rule.inherits(p.node) {
		p.drop(rule.Name, rule.UID, rule.ID())
		p.forget(rule.Name, rule.UID, rule.ID())
	}
	if key := v1alpha1.CompletedPrefix + string(rule.UID); rule.Deleting && has(p.node.Annotations, key) {
		p.remove(key, rule.Name, rule.UID, rule.ID())
	}
}

// sweep takes back what rules left that no longer exist. A completion of the older form
// ends in a rule's name, which may look like a UID.
func (p *planner) sweep(rules map[types.UID]bool, names map[string]bool) {
	for _, key := range slices.Sorted(maps.Keys(p.node.Annotations)) {
		value := p.node.Annotations[key]
		if uid, ok := completionOf(key, value); ok && !rules[uid] && !names[string(uid)] {
			p.plan.Swept = append(p.plan.Swept, uid)
			p.remove(key, unknownRule, uid, TaintID{})
		}
		record, ok := parseRecord(key, value)
		if !ok || rules[record.RuleUID] {
			continue
		}
		p.plan.Swept = append(p.plan.Swept, record.RuleUID)
		p.drop(record.Rule, record.RuleUID, record.Taint)
		p.forget(record.Rule, record.RuleUID, record.Taint)
	}
}

// drop takes the taint off, unless some rule wants it there or no rule may manage it: a rule
// that was stored under another CRD, or a forged record, can name any taint.
func (p *planner) drop(rule string, uid types.UID, id TaintID) {
	if p.wanted[id] || !id.managed() || !p.has(id) {
		return
	}
	p.plan.Taints = slices.DeleteFunc(p.plan.Taints, func(t corev1.Taint) bool { return idOf(t) == id })
	p.plan.TaintsChanged = true
	p.change(Removed, rule, uid, id)
}

// forget deletes the rule's record, if there is one.
func (p *planner) forget(rule string, uid types.UID, id TaintID) {
	if _, owned := p.records[uid]; owned {
		p.remove(v1alpha1.HoldPrefix+string(uid), rule, uid, id)
	}
}

// remove deletes an annotation of the rule. Every rule that the plan serves has a change in
// it, be it only this one.
func (p *planner) remove(key, rule string, uid types.UID, id TaintID) {
	p.plan.Remove = append(p.plan.Remove, key)
	if !slices.ContainsFunc(p.plan.Changes, func(c Change) bool { return c.UID == uid }) {
		p.change(Forgotten, rule, uid, id)
	}
}

func (p *planner) set(key, value string) {
	if p.plan.Set == nil {
		p.plan.Set = map[string]string{}
	}
	p.plan.Set[key] = value
}

func (p *planner) change(kind ChangeKind, rule string, uid types.UID, id TaintID) {
	p.plan.Changes = append(p.plan.Changes, Change{Kind: kind, Rule: rule, UID: uid, Taint: id})
}

// has says whether the plan so far leaves the taint on the node.
func (p *planner) has(id TaintID) bool {
	return slices.ContainsFunc(p.plan.Taints, func(t corev1.Taint) bool { return idOf(t) == id })
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
