package readiness

import (
	"encoding/json"
	"maps"
	"slices"
)

// Admitted are the taints that the API server itself has put on the node between two states
// of it, told from the records that it put there too. Before is nil for a new node.
func (b *Rulebook) Admitted(before, after *Node) []Change {
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(after.Annotations)) {
		uid, ok := holderOf(key)
		if !ok || before != nil && has(before.Annotations, key) {
			continue
		}
		var r record
		rule := b.byUID[uid]
		if rule == nil || json.Unmarshal([]byte(after.Annotations[key]), &r) != nil {
			continue
		}
		if r.Origin == OriginBorn || r.Origin == OriginLabelled {
			changes = append(changes, Change{Kind: Added, Rule: rule.Name, UID: rule.UID, Taint: rule.ID()})
		}
	}
	return changes
}
