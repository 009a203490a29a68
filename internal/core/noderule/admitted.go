package noderule

import (
	"slices"
	"strings"
)

// Admitted are the taints that the API server itself has put on the node between two states
// of it, told from the records that it put there too. Before is nil for a new node.
func (b *Rulebook) Admitted(before, after *Node) []Change {
	var changes []Change
	for key, value := range after.Annotations {
		uid, ok := holderOf(key)
		if !ok || before != nil && has(before.Annotations, key) {
			continue
		}
		rule := b.byUID[uid]
		if rule == nil {
			continue
		}
		if origin := originIn(value); origin == OriginBorn || origin == OriginLabelled {
			changes = append(changes, Change{Kind: Added, Rule: rule.Name, UID: rule.UID, Taint: rule.ID()})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return changes
}
