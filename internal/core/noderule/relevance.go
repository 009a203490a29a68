package noderule

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Concerns reports whether the change of a node from before to after can change any plan. Changes that no rule names
// cannot: a heartbeat, a label, taint or condition of other components.
func (b *Rulebook) Concerns(before, after *Node) bool {
	c := b.changeOf(before, after)
	return !c.none() && (b.orphaned(&c) || slices.ContainsFunc(b.rules, c.concerns))
}

// Concerned are the rules whose verdict the change of a node from before to after can change.
func (b *Rulebook) Concerned(before, after *Node) []*Rule {
	c := b.changeOf(before, after)
	if c.none() {
		return nil
	}
	var concerned []*Rule
	for _, rule := range b.rules {
		if c.concerns(rule) {
			concerned = append(concerned, rule)
		}
	}
	return concerned
}

// orphaned reports whether a record appeared whose rule does not exist.
func (b *Rulebook) orphaned(c *change) bool {
	return slices.ContainsFunc(c.annotations, func(key string) bool {
		value, there := c.after.Annotations[key]
		uid, ok := ownerOf(key)
		if !ok {
			uid, ok = memoryOwner(key)
		}
		if !ok {
			uid, ok = completionOf(key, value)
		}
		return ok && there && b.byUID[uid] == nil
	})
}

// change is what differs between two states of a node, of what rules can name.
type change struct {
	before, after *Node
	recreated     bool
	labels        bool
	conditions    []corev1.NodeConditionType
	taints        []TaintID
	annotations   []string

	// Only if some rule depends on it: whether the node has booted, whether Ready changed, and which conditions have a
	// new heartbeat, or one that is older than before.
	boot, ready    bool
	beats, setBack []corev1.NodeConditionType
}

func (b *Rulebook) changeOf(before, after *Node) change {
	c := change{
		before:      before,
		after:       after,
		recreated:   before.UID != after.UID,
		labels:      !maps.Equal(before.Labels, after.Labels),
		conditions:  changedConditions(before, after),
		taints:      changedTaints(before, after),
		annotations: changedAnnotations(before.Annotations, after.Annotations),
	}
	if b.timed {
		c.boot = before.BootID != after.BootID
		c.ready = before.ready() != after.ready()
		c.beats, c.setBack = changedBeats(before, after)
	}
	return c
}

func (c *change) none() bool {
	return !c.recreated && !c.labels && len(c.conditions) == 0 && len(c.taints) == 0 && len(c.annotations) == 0 &&
		!c.boot && !c.ready && len(c.beats) == 0
}

func (c *change) concerns(rule *Rule) bool {
	if slices.ContainsFunc(c.annotations, rule.isKey) {
		return true
	}
	if c.recreated || c.labels {
		selected := rule.Selects(c.after)
		if was := rule.Selects(c.before); was != selected || (c.recreated && selected) {
			return true
		}
	}
	tainted := slices.Contains(c.taints, rule.ID())
	return tainted && owns(rule, c.after) || (tainted || c.touches(rule)) && rule.Selects(c.after)
}

// touches reports whether a condition changed that the rule names, or something else that the rule depends on. A
// heartbeat matters only on a node that is held, or was released by the deadline: on other nodes it is checked when it
// would become too old, unless it makes that earlier.
func (c *change) touches(rule *Rule) bool {
	if rule.Boot && (c.boot || c.ready) || rule.MaxUnavailable != nil && c.ready {
		return true
	}
	if rule.timed && names(rule, c.beats) && (owns(rule, c.after) || rule.recordsExpiry() && decodeMemory(rule, c.after).Expired != "") {
		return true
	}
	if rule.Ages() && names(rule, c.setBack) {
		return true
	}
	return names(rule, c.conditions) || slices.ContainsFunc(rule.after, c.touches)
}

// names reports whether the rule names one of the conditions.
func names(rule *Rule, types []corev1.NodeConditionType) bool {
	return len(types) > 0 && slices.ContainsFunc(rule.Requirements, func(r v1alpha1.ConditionRequirement) bool {
		return slices.Contains(types, corev1.NodeConditionType(r.Type))
	})
}

// changedBeats are the types of conditions that have another heartbeat, and of those with one that is
// older than before: a clock was set back.
func changedBeats(before, after *Node) (types, setBack []corev1.NodeConditionType) {
	for i := range after.Conditions {
		c := &after.Conditions[i]
		was := before.condition(string(c.Type))
		if was != nil && was.LastHeartbeatTime.Equal(&c.LastHeartbeatTime) {
			continue
		}
		types = append(types, c.Type)
		if was != nil && c.LastHeartbeatTime.Before(&was.LastHeartbeatTime) {
			setBack = append(setBack, c.Type)
		}
	}
	return types, setBack
}

// changedConditions are the types whose status differs. Order, heartbeats and messages do not count.
func changedConditions(before, after *Node) []corev1.NodeConditionType {
	return appendDifferent(appendDifferent(nil, before, after), after, before)
}

// appendDifferent appends the types of the conditions of one node that the other node has with a different status or does
// not have. Conditions at the same index are compared first: for a heartbeat this is sufficient.
func appendDifferent(types []corev1.NodeConditionType, one, other *Node) []corev1.NodeConditionType {
	for i := range one.Conditions {
		c := &one.Conditions[i]
		if i < len(other.Conditions) && other.Conditions[i].Type == c.Type && other.Conditions[i].Status == c.Status {
			continue
		}
		// If a type occurs twice, the first condition counts, on either node.
		if its := other.condition(string(c.Type)); its == nil || its.Status != one.condition(string(c.Type)).Status {
			types = append(types, c.Type)
		}
	}
	return types
}

// changedTaints are the taints that were added or removed. Values and order do not count.
func changedTaints(before, after *Node) []TaintID {
	return appendMissing(appendMissing(nil, before, after), after, before)
}

// appendMissing appends the one node's taints that the other does not have.
func appendMissing(ids []TaintID, one, other *Node) []TaintID {
	for i := range one.Taints {
		if id := idOf(&one.Taints[i]); !other.Has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// changedAnnotations are the keys of our annotations whose presence or value differs.
func changedAnnotations(before, after map[string]string) []string {
	var changed []string
	for key, value := range after {
		if !IsOurs(key) {
			continue
		}
		if old, ok := before[key]; !ok || old != value {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if IsOurs(key) && !has(after, key) {
			changed = append(changed, key)
		}
	}
	return changed
}

// Admitted are the taints that the admission policy added between two states of the node, according to its records.
// Before is nil for a new node.
func (b *Rulebook) Admitted(before, after *Node) []Change {
	var changes []Change
	for key, value := range after.Annotations {
		uid, ok := ownerOf(key)
		if !ok || before != nil && has(before.Annotations, key) {
			continue
		}
		rule := b.byUID[uid]
		if rule == nil {
			continue
		}
		if origin := originIn(value); origin == OriginCreated || origin == OriginLabelled {
			changes = append(changes, Change{Kind: Added, Rule: rule.Name, UID: rule.UID, Taint: rule.ID()})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return changes
}
