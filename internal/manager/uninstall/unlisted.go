package uninstall

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// unlistedRecords are hold records that no rule of this cluster wrote, by node. They stay, and so do
// their taints: a person must decide.
type unlistedRecords struct {
	mu     sync.Mutex
	byNode map[string][]string
}

func (u *unlistedRecords) add(node string, keys []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(keys) == 0 {
		delete(u.byNode, node)
		return
	}
	if u.byNode == nil {
		u.byNode = map[string][]string{}
	}
	u.byNode[node] = keys
}

// report names them in the summary, not all if there are many.
func (u *unlistedRecords) report(s *summary) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.byNode) == 0 {
		return
	}
	var commands []string
	for _, node := range slices.Sorted(maps.Keys(u.byNode))[:min(named, len(u.byNode))] {
		commands = append(commands, fmt.Sprintf("kubectl annotate node %s %s-", node, u.byNode[node][0]))
	}
	s.stays(fmt.Sprintf("hold records on %d nodes that no rule wrote, with their taints: remove them by hand if they are not wanted, e.g. %s", len(u.byNode), strings.Join(commands, "; ")))
}
