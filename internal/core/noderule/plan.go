package noderule

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Plan is the change of one node that the verdicts of all rules require. Applied once, it leaves nothing to plan. It
// keeps every taint and annotation that Readygate does not own.
type Plan struct {
	// Taints is the whole list that the node must have. If it did not change, it is the node's slice.
	Taints []corev1.Taint
	// TaintsChanged means that Taints differs from what the node has.
	TaintsChanged bool
	// Set and Remove are annotations to write and to delete.
	Set    map[string]string
	Remove []string
	// Changes are what the plan does and for which rule, in a stable order.
	Changes []Change
	// Swept are the rules whose records or taints are removed because they are not among the rules. The caller that
	// applies the plan must make sure that they do not exist: it cannot be undone.
	Swept []types.UID
	// Unlisted are the keys of ownership records that no rule wrote, according to the list of rule taints. The plan
	// does not change them and their taints.
	Unlisted []string
}

// ChangeKind is a kind of Change.
type ChangeKind string

// What a plan does for a rule.
const (
	// Added: the rule's taint is added to the node.
	Added ChangeKind = "Added"
	// Removed: the rule's taint is removed from the node.
	Removed ChangeKind = "Removed"
	// Adopted: the node had the rule's taint before, and the rule now owns it.
	Adopted ChangeKind = "Adopted"
	// Completed: a bootstrap-only rule has released the node for good.
	Completed ChangeKind = "Completed"
	// Forgotten: a record of the rule is deleted, and no taint.
	Forgotten ChangeKind = "Forgotten"
	// Noted: a record of the rule changes, and nothing else.
	Noted ChangeKind = "Noted"
	// Stuck: the node has been held longer than the rule's deadline.
	Stuck ChangeKind = "Stuck"
	// Expired: the taint is removed because the node is stuck.
	Expired ChangeKind = "Expired"
)

// Change is one change of a plan, and the rule that requires it.
type Change struct {
	Kind  ChangeKind
	Rule  string
	UID   types.UID
	Taint TaintID
}

// Empty reports whether there is nothing to change.
func (p *Plan) Empty() bool { return !p.TaintsChanged && len(p.Set) == 0 && len(p.Remove) == 0 }

// Apply returns the node with the plan applied.
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

// Disown returns the plan that removes all ownership records from the node and leaves the taints: Readygate no longer
// owns them.
func Disown(node *Node) *Plan {
	p := planner{node: node, plan: Plan{Taints: node.Taints}}
	for _, key := range slices.Sorted(maps.Keys(node.Annotations)) {
		if uid, ok := ownerOf(key); ok {
			p.remove(key, claimIn(key, uid, node.Annotations[key]))
		} else if uid, ok := memoryOwner(key); ok {
			p.remove(key, claim{rule: unknownRule, uid: uid})
		}
	}
	return &p.plan
}
