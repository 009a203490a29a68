package node

import (
	"slices"
	"sync"
	"time"
)

// Failure is a refused write of a node.
type Failure struct {
	// Reason is one CamelCase word, Message what the API server said.
	Reason, Message string
	// At is when this failure was first seen.
	At time.Time
	// Rules are the names of the rules for which the node was to be written.
	Rules []string
	// Again counts how often the same failure was recorded since.
	Again int
}

// Failures holds at most one failure a node. The zero value is ready for use.
type Failures struct {
	mu       sync.Mutex
	byNode   map[string]Failure
	passing  map[string]int
	onChange func(rule string)
}

// OnChange sets who is told the rules whose failures changed. There is one listener; it
// must not block.
func (f *Failures) OnChange(listener func(rule string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onChange = listener
}

// Record remembers a failure and returns how often the node has failed before in the same
// way for the same rules: 0 means that it is news.
func (f *Failures) Record(node string, failure Failure) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, failed := f.byNode[node]
	if failed && old.Reason == failure.Reason && slices.Equal(old.Rules, failure.Rules) {
		old.Again++ // the message may differ each time, by a time or a number in it
		f.byNode[node] = old
		return old.Again
	}
	if f.byNode == nil {
		f.byNode = map[string]Failure{}
	}
	f.byNode[node] = failure
	f.tell(old.Rules)
	f.tell(failure.Rules)
	return 0
}

// Passing counts a failure that may pass by itself, and returns how many there were in a row.
func (f *Failures) Passing(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passing == nil {
		f.passing = map[string]int{}
	}
	f.passing[node]++
	return f.passing[node]
}

// Clear forgets the node's failure: it was written, is as it should be, or is gone.
func (f *Failures) Clear(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.passing, node)
	if old, failed := f.byNode[node]; failed {
		delete(f.byNode, node)
		f.tell(old.Rules)
	}
}

// Of are the failures of a rule, by node name.
func (f *Failures) Of(rule string) map[string]Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	failures := map[string]Failure{}
	for node, failure := range f.byNode {
		if slices.Contains(failure.Rules, rule) {
			failures[node] = failure
		}
	}
	return failures
}

func (f *Failures) tell(rules []string) {
	if f.onChange == nil {
		return
	}
	for _, rule := range rules {
		f.onChange(rule)
	}
}
