package readiness

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// planner gathers one plan. Most nodes are as they should be, so it copies, sorts and
// remembers nothing before there is something to change.
type planner struct {
	node  *Node
	rules []*Rule
	now   time.Time
	plan  Plan
}

func newPlanner(node *Node, rules []*Rule, now time.Time) planner {
	return planner{node: node, rules: rules, now: now, plan: Plan{Taints: node.Taints}}
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

func (p *planner) settle(rule *Rule, state State, completed bool) {
	switch {
	case rule.frozen() && bornLate(rule, p.node):
		p.takeBack(claimOf(rule))
	case rule.frozen():
	case !rule.Active() || state == NotSelected || completed:
		p.letGo(rule)
	case state == Held:
		p.hold(rule)
	case state == Released:
		p.release(rule)
	}
}

func (p *planner) hold(rule *Rule) {
	switch {
	case !p.has(rule.ID()):
		p.plan.Taints = append(p.ownTaints(), rule.Taint)
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

// sweep takes back what rules left that no longer exist.
func (p *planner) sweep() {
	var strays []string
	for key, value := range p.node.Annotations {
		if _, ok := p.strayOf(key, value); ok {
			strays = append(strays, key)
		}
	}
	slices.Sort(strays)
	for _, key := range strays {
		uid, _ := p.strayOf(key, p.node.Annotations[key])
		p.plan.Swept = append(p.plan.Swept, uid)
		if _, held := holderOf(key); held {
			p.takeBack(claimIn(key, uid, p.node.Annotations[key]))
		} else {
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
	slices.Sort(p.plan.Remove)
}

// strayOf is the UID of the rule that left the annotation, if it is a record or a completion
// of one that no longer exists. A completion of the older form ends in a rule's name, which
// may look like a UID.
func (p *planner) strayOf(key, value string) (types.UID, bool) {
	if uid, ok := holderOf(key); ok {
		return uid, !p.exists(uid)
	}
	if id, ok := strings.CutPrefix(key, v1alpha1.CompletedPrefix); !ok || p.exists(types.UID(id)) || p.isName(id) {
		return "", false
	}
	return completionOf(key, value)
}

// exists, isName and wants look through all rules: a node has few annotations that are ours,
// and few taints that go.
func (p *planner) exists(uid types.UID) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.UID == uid })
}

func (p *planner) isName(name string) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.Name == name })
}

// wants says whether some rule holds the node with the taint. It judges by itself, which is the
// same as long as a verdict depends on nothing but the rule and the node.
func (p *planner) wants(id TaintID) bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool {
		if r.ID() != id || !r.Active() {
			return false
		}
		state, _ := judge(r, p.node)
		return state == Held
	})
}

// takeBack removes a taint and the record of it.
func (p *planner) takeBack(c claim) {
	p.drop(c)
	p.remove(c.record, c)
}

// drop takes the taint off, unless some rule wants it there or no rule may manage it: a rule
// that was stored under another CRD, or a forged record, can name any taint.
func (p *planner) drop(c claim) {
	if !p.has(c.taint) || !c.taint.managed() || p.wants(c.taint) {
		return
	}
	p.plan.Taints = slices.DeleteFunc(p.ownTaints(), func(t corev1.Taint) bool { return idOf(&t) == c.taint })
	p.change(Removed, c)
}

// ownTaints is the list of the plan, to be changed. Until then it is the node's.
func (p *planner) ownTaints() []corev1.Taint {
	if !p.plan.TaintsChanged {
		p.plan.Taints, p.plan.TaintsChanged = slices.Clone(p.plan.Taints), true
	}
	return p.plan.Taints
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
func (p *planner) has(id TaintID) bool { return contains(p.plan.Taints, id) }

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
