package live

import (
	"maps"
	"slices"

	"github.com/readygate/readygate/internal/plugin/view"
)

// changes are the changes since the follower's last Take. A name without a row is a deleted node.
type changes struct {
	rules   bool
	nodes   map[string]struct{}
	waiting bool // the number of pods that are bound to no node

	gated    map[string]struct{} // pods whose gates changed, or that no longer wait
	podRules bool

	connection bool
}

func noChanges() changes {
	return changes{nodes: map[string]struct{}{}, gated: map[string]struct{}{}}
}

// Follower receives changes. The fleet does not wait for a slow follower. The pending changes of a follower are bounded
// by the size of the fleet.
type Follower struct {
	fleet   *Fleet
	signal  chan struct{}
	changes changes
}

// Follow returns a new follower, and the snapshot to which its changes apply.
func (f *Fleet) Follow() (*Follower, Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	follower := &Follower{fleet: f, signal: make(chan struct{}, 1), changes: noChanges()}
	f.followers[follower] = struct{}{}
	return follower, f.snapshot()
}

// Stop stops the follower.
func (w *Follower) Stop() {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	delete(w.fleet.followers, w)
}

// Changed returns a channel that receives a value when there are changes to take.
func (w *Follower) Changed() <-chan struct{} { return w.signal }

// Delta holds the current state of what changed.
type Delta struct {
	// Rules are all rules; nil if no rule and no count changed.
	Rules []view.Rule
	// Nodes are the changed rows, by name, and Gone the deleted nodes.
	Nodes []view.Node
	Gone  []string
	// Waiting is the number of pods that are bound to no node; nil if it has not changed.
	Waiting *int
	// Gated are the changed rows of pods that wait for a gate, and Ungated the pods that no longer wait, as
	// namespace/name.
	Gated   []view.Pod
	Ungated []string
	// PodRules is the number of PodReadinessRules; nil if it has not changed.
	PodRules *int
	// Connection is nil if it has not changed.
	Connection *Connection
}

// Take returns the changes since the last call.
func (w *Follower) Take() Delta {
	f := w.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := w.changes
	w.changes = noChanges()
	var delta Delta
	if taken.connection {
		delta.Connection = new(f.connection)
	}
	if taken.rules {
		delta.Rules = f.book.Rules(f.tally)
	}
	for _, name := range slices.Sorted(maps.Keys(taken.nodes)) {
		if row, there := f.nodes[name]; there {
			delta.Nodes = append(delta.Nodes, row)
		} else {
			delta.Gone = append(delta.Gone, name)
		}
	}
	if taken.waiting {
		delta.Waiting = new(len(f.waiting))
	}
	f.takeGates(&taken, &delta)
	return delta
}

// notify records a change for every follower.
func (f *Fleet) notify(note func(*changes)) {
	for follower := range f.followers {
		note(&follower.changes)
		select {
		case follower.signal <- struct{}{}:
		default: // already signalled
		}
	}
}
