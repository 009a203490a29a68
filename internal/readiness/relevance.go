package readiness

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Differs says whether two states of a node differ in anything that a rule could name. It
// is cheap and needs no rules: most changes of nodes are heartbeats.
func Differs(before, after *Node) bool { return !changeOf(before, after).none() }

// Concerns says whether the change of a node from before to after can change any plan.
// What no rule names does not: a heartbeat, a foreign label, taint or condition.
func (b *Rulebook) Concerns(before, after *Node) bool {
	c := changeOf(before, after)
	return !c.none() && (b.stray(c, after) || slices.ContainsFunc(b.rules, c.concerns))
}

// Concerned are the rules for which the change of a node from before to after can matter.
func (b *Rulebook) Concerned(before, after *Node) []*Rule {
	c := changeOf(before, after)
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

// stray says that a record appeared whose rule does not exist.
func (b *Rulebook) stray(c change, after *Node) bool {
	return slices.ContainsFunc(c.annotations, func(key string) bool {
		value, there := after.Annotations[key]
		uid, ok := holderOf(key)
		if !ok {
			uid, ok = completionOf(key, value)
		}
		return ok && there && b.byUID[uid] == nil
	})
}

// change is what differs between two states of a node, of all that rules can name.
type change struct {
	before, after *Node
	recreated     bool
	labels        bool
	conditions    []string
	taints        []TaintID
	annotations   []string
}

func changeOf(before, after *Node) change {
	return change{
		before:      before,
		after:       after,
		recreated:   before.UID != after.UID,
		labels:      !maps.Equal(before.Labels, after.Labels),
		conditions:  changedConditions(before.Conditions, after.Conditions),
		taints:      changedTaints(before.Taints, after.Taints),
		annotations: changedAnnotations(before.Annotations, after.Annotations),
	}
}

func (c change) none() bool {
	return !c.recreated && !c.labels && len(c.conditions) == 0 && len(c.taints) == 0 && len(c.annotations) == 0
}

func (c change) concerns(rule *Rule) bool {
	if slices.ContainsFunc(c.annotations, rule.isKey) {
		return true
	}
	selected := rule.Selects(c.after)
	if c.recreated || c.labels {
		if was := rule.Selects(c.before); was != selected || (c.recreated && selected) {
			return true
		}
	}
	if slices.Contains(c.taints, rule.ID()) && (selected || owns(rule, c.after)) {
		return true
	}
	return selected && slices.ContainsFunc(rule.Requirements, func(r v1alpha1.ConditionRequirement) bool { return slices.Contains(c.conditions, r.Type) })
}

// changedConditions are the types whose status differs. Order, heartbeats and messages do
// not count.
func changedConditions(before, after []corev1.NodeCondition) []string {
	if slices.EqualFunc(before, after, func(a, b corev1.NodeCondition) bool { return a.Type == b.Type && a.Status == b.Status }) {
		return nil
	}
	was := make(map[corev1.NodeConditionType]corev1.ConditionStatus, len(before))
	for _, c := range before {
		if _, twice := was[c.Type]; !twice { // of two of a type the first one counts
			was[c.Type] = c.Status
		}
	}
	var changed []string
	for _, c := range after {
		if status, ok := was[c.Type]; !ok || status != c.Status {
			changed = append(changed, string(c.Type))
		}
		delete(was, c.Type)
	}
	for gone := range was {
		changed = append(changed, string(gone))
	}
	return changed
}

// changedTaints are the taints that came or went. Values and order do not count.
func changedTaints(before, after []corev1.Taint) []TaintID {
	if slices.EqualFunc(before, after, func(a, b corev1.Taint) bool { return idOf(a) == idOf(b) }) {
		return nil
	}
	was := make(map[TaintID]bool, len(before))
	for _, t := range before {
		was[idOf(t)] = true
	}
	var changed []TaintID
	for _, t := range after {
		if !was[idOf(t)] {
			changed = append(changed, idOf(t))
		}
		delete(was, idOf(t))
	}
	return slices.AppendSeq(changed, maps.Keys(was))
}

// changedAnnotations are the keys of our annotations whose presence or value differs.
func changedAnnotations(before, after map[string]string) []string {
	var changed []string
	for key, value := range after {
		if old, ok := before[key]; IsOurs(key) && (!ok || old != value) {
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
