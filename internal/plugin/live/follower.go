package live

import (
	"maps"
	"slices"

	"github.com/readygate/readygate/internal/plugin/view"
)

// changes are what changed since a follower last looked. A name without a line is of a node
// that is gone.
type changes struct {
	rules   bool
	nodes   map[string]struct{}
	waiting bool // the number of pods that are bound to no node

	gated    map[string]struct{} // pods whose gates changed, or no longer wait
	podRules bool

	connection bool
}

func noChanges() changes {
	return changes{nodes: map[string]struct{}{}, gated: map[string]struct{}{}}
}

// Follower receives changes. The fleet does not wait for a slow follower; what it has to catch up with is
// bounded by the size of the fleet.
type Follower struct {
	fleet   *Fleet
	signal  chan struct{}
	changes changes
}

// Follow starts to note changes for a new follower, and returns the fleet as it is before them.
func (f *Fleet) Follow() (*Follower, Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	follower := &Follower{fleet: f, signal: make(chan struct{}, 1), changes: noChanges()}
	f.followers[follower] = struct{}{}
	return follower, f.snapshot()
}

// Stop ends it.
func (w *Follower) Stop() {
	w.fleet.mu.Lock()
	defer w.fleet.mu.Unlock()
	delete(w.fleet.followers, w)
}

// Changed has something in it when there is something to take.
func (w *Follower) Changed() <-chan struct{} { return w.signal }

// Delta is what changed, as it is now.
type Delta struct {
	// Rules are all rules; nil if none of them, nor their counts, changed.
	Rules []view.Rule
	// Nodes are the changed lines, by name, and Gone the nodes that are no longer there.
	Nodes []view.Node
	Gone  []string
	// Waiting is the number of pods that are bound to no node; nil if it has not changed.
	Waiting *int
	// Gated are the changed lines of pods that wait for a gate, and Ungated those that no longer do, as
	// namespace/name.
	Gated   []view.Pod
	Ungated []string
	// PodRules is how many rules of pods there are; nil if that has not changed.
	PodRules *int
	// Connection is nil if it has not changed.
	Connection *Connection
}

// Take returns what changed since the last time.
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

// tell notes a change for every follower.
func (f *Fleet) tell(note func(*changes)) {
	for follower := range f.followers {
		note(&follower.changes)
		select {
		case follower.signal <- struct{}{}:
		default: // it knows
		}
	}
}
