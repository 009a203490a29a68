package node

import (
	"slices"
	"sync"
	"time"
)

// Failure is a rejected write of a node.
type Failure struct {
	// Reason is one CamelCase word, and Message the error of the API server.
	Reason, Message string
	// At is the time of the first such failure.
	At time.Time
	// Rules are the names of the rules for which the node was to be written.
	Rules []string
	// Again counts how often the same failure was recorded since.
	Again int
}

// Failures has at most one failure per node. The zero value is ready for use.
type Failures struct {
	mu       sync.Mutex
	byNode   map[string]Failure
	passing  map[string]int
	onChange func(rule string)
}

// OnChange sets the function that is called with each rule whose failures changed. There is one listener; it must not
// block.
func (f *Failures) OnChange(listener func(rule string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onChange = listener
}

// Record stores a failure, and returns how often the same failure for the same rules was recorded before; 0 for a new
// one.
func (f *Failures) Record(node string, failure Failure) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, failed := f.byNode[node]
	if failed && old.Reason == failure.Reason && slices.Equal(old.Rules, failure.Rules) {
		old.Again++ // the message may contain a time or a number that differs
		f.byNode[node] = old
		return old.Again
	}
	if f.byNode == nil {
		f.byNode = map[string]Failure{}
	}
	f.byNode[node] = failure
	f.notify(old.Rules)
	f.notify(failure.Rules)
	return 0
}

// Passing counts a failure that may be transient, and returns the number of consecutive ones.
func (f *Failures) Passing(node string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passing == nil {
		f.passing = map[string]int{}
	}
	f.passing[node]++
	return f.passing[node]
}

// Clear removes the failure of a node that was written, needs no write, or is deleted.
func (f *Failures) Clear(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.passing, node)
	if old, failed := f.byNode[node]; failed {
		delete(f.byNode, node)
		f.notify(old.Rules)
	}
}

// Of returns the failures of a rule, by node name.
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

func (f *Failures) notify(rules []string) {
	if f.onChange == nil {
		return
	}
	for _, rule := range rules {
		f.onChange(rule)
	}
}
