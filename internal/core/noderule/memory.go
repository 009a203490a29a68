package noderule

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// recall is the rule's record on the node, as it ought to be for the boot that the node is in;
// empty if there is none.
func recall(rule *Rule, node *Node) record {
	rec := recordIn(node.Annotations[rule.holdKey])
	if !rule.Boot || node.BootID == "" || rec.Boot == node.BootID {
		return rec
	}
	if rec.Boot != "" || has(node.Annotations, rule.completedKey) {
		// Whatever is there may be from before: between the last look and this one the node went
		// away, and somebody may have reported in its last moment. And it begins to wait only now.
		rec.Beats, rec.Since, rec.Stuck = beatsOf(rule, node), "", ""
		if rec.Origin == OriginBorn { // which is since the node was created
			rec.Origin = OriginAdded
		}
	}
	rec.Boot, rec.Armed = node.BootID, false
	return rec
}

// arm makes a record ready for a node that may be in another boot when it comes back. Which heartbeats
// are from before is seen then.
func arm(rec *record, node *Node) {
	rec.Boot, rec.Armed, rec.Beats = node.BootID, true, nil
}

// beatsOf are the heartbeats of the conditions that the rule names.
func beatsOf(rule *Rule, node *Node) map[string]string {
	beats := map[string]string{}
	for i := range rule.Requirements {
		if condition := node.condition(rule.Requirements[i].Type); condition != nil {
			beats[rule.Requirements[i].Type] = beatOf(condition)
		}
	}
	return beats
}

// aheadOf are the heartbeats from a time to come, of conditions whose age the rule limits; nil if
// there are none.
func aheadOf(rule *Rule, node *Node, rec *record, now time.Time) map[string]string {
	var ahead map[string]string
	for i := range rule.Requirements {
		requirement := &rule.Requirements[i]
		if look(requirement, node, rec, now).doubt != DoubtAhead {
			continue
		}
		if ahead == nil {
			ahead = map[string]string{}
		}
		ahead[requirement.Type] = beatOf(node.condition(requirement.Type))
	}
	return ahead
}

// beatOf is a condition's heartbeat, or its last transition if it has none, and what it said: times
// have whole seconds.
func beatOf(condition *corev1.NodeCondition) string {
	beat := condition.LastHeartbeatTime
	if beat.IsZero() {
		beat = condition.LastTransitionTime
	}
	return beat.UTC().Format(time.RFC3339) + " " + string(condition.Status)
}

// memory is the annotation on a node that says what a rule remembers of it besides a hold.
type memory struct {
	Rule string `json:"rule"`
	// InUse is since when the node counts as one in use; see maxUnavailable.
	InUse string `json:"inUse,omitempty"`
	// Expired is when the node was released because it was stuck. It lasts until the
	// requirements are met.
	Expired string `json:"expired,omitempty"`
}

// String is the value of the annotation; empty if there is nothing to remember.
func (m *memory) String() string {
	if m.InUse == "" && m.Expired == "" {
		return ""
	}
	value, _ := json.Marshal(m) // strings only: cannot fail
	return string(value)
}

// remembered is what the rule remembers of the node.
func remembered(rule *Rule, node *Node) memory {
	m := memory{Rule: rule.Name}
	if value, ok := node.Annotations[rule.memoryKey]; ok {
		_ = json.Unmarshal([]byte(value), &m) // what cannot be read is forgotten
	}
	m.Rule = rule.Name
	return m
}

// InUse says whether the node counts as one in use for a rule with maxUnavailable.
func InUse(rule *Rule, node *Node) bool { return inUse(rule, node) }

// inUse says whether the node counts as one in use for a rule with maxUnavailable: the rule
// released it before, it is older than the rule, or it takes pods now.
func inUse(rule *Rule, node *Node) bool {
	return node.Created.Before(rule.Created) || remembered(rule, node).InUse != "" ||
		node.ready() && !owns(rule, node) && !node.Has(rule.ID())
}
