package noderule

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
	// Taints is the whole list that the node is to have. Where it did not change it is the
	// node's own.
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
	// Unlisted are the keys of hold records that no rule wrote, as far as the list of rule taints
	// says. The plan leaves them and their taints as they are.
	Unlisted []string
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
	// Noted: what the node remembers of the rule is another, and nothing else changes.
	Noted ChangeKind = "Noted"
	// Stuck: the node has been held longer than the rule's deadline.
	Stuck ChangeKind = "Stuck"
	// Expired: the taint is taken off because the node is stuck.
	Expired ChangeKind = "Expired"
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

// PlanFor is the change that the verdicts ask for. They must be the verdicts of all rules: a record of
// any other rule is of one that is gone, and is swept if the list has that rule with that taint.
func PlanFor(node *Node, verdicts []Verdict, listed RuleTaints, now time.Time) *Plan {
	plan := planFor(node, verdicts, listed, now) // as a value: see Rulebook.Plan
	return &plan
}

func planFor(node *Node, verdicts []Verdict, listed RuleTaints, now time.Time) Plan {
	rules := make([]*Rule, len(verdicts))
	for i := range verdicts {
		rules[i] = verdicts[i].Rule
	}
	p := planner{node: node, rules: rules, verdicts: verdicts, listed: listed, now: now}
	p.run()
	return p.plan
}

// Disown is the plan that forgets who put which taint on the node, and leaves the taints: they
// are somebody else's from now on.
func Disown(node *Node) *Plan {
	p := planner{node: node, plan: Plan{Taints: node.Taints}}
	for _, key := range slices.Sorted(maps.Keys(node.Annotations)) {
		if uid, ok := holderOf(key); ok {
			p.remove(key, claimIn(key, uid, node.Annotations[key]))
		} else if uid, ok := rememberer(key); ok {
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
	return &p.plan
}
