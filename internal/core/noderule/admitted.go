package noderule

import (
	"slices"
	"strings"
)

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
