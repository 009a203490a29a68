package reporter

import (
	"sync"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// board holds the latest result of each check and the last written condition. Check loops
// write to it; the writer and the server read it.
type board struct {
	mu      sync.Mutex
	entries map[string]*entry // by condition type
	learned *nodestatus.Node  // the node as first read, updated by every write; nil: not read yet
	boot    time.Time
	wake    chan struct{} // wakes the writer
}

// entry is one condition.
type entry struct {
	task  *task
	track *Track
	// since is the lastTransitionTime of sinceStatus.
	since       time.Time
	sinceStatus string
	written     statement
	// rejectedUntil is the time until which writes leave out the condition.
	rejectedUntil time.Time
}

// statement is the status, reason and message of a condition.
type statement struct{ status, reason, message string }

func newBoard(boot time.Time) *board {
	return &board{entries: map[string]*entry{}, boot: boot, wake: make(chan struct{}, 1)}
}

// put adds a check. It replaces a check of the same condition type and keeps its status.
func (b *board) put(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{task: t, track: NewTrack(t.thresholds)}
	if before, replaced := b.entries[t.conditionType]; replaced {
		if before.track.Status() == nodestatus.True {
			e.track.Adopt(before.track.Basis())
		}
		e.since, e.sinceStatus, e.written = before.since, before.sinceStatus, before.written
	} else if b.learned != nil {
		e.learn(*b.learned, t.conditionType, b.boot)
	}
	b.entries[t.conditionType] = e
}

// remove drops a condition from the board. The condition on the node stays unchanged.
func (b *board) remove(conditionType string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, conditionType)
}

// outcome is the effect of one result on the condition.
type outcome struct {
	status   string // of the condition; Unknown before the first decision
	failures int    // consecutive failures while the condition is True
	news     bool   // the condition must be written
	pause    time.Duration
}

// observe records a result of a check.
func (b *board) observe(t *task, observation check.Observation, took time.Duration, now time.Time) outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, found := b.entries[t.conditionType]
	switch {
	case !found:
		return outcome{status: nodestatus.Unknown, pause: t.interval}
	case e.task != t: // the check was replaced during this run
		return outcome{status: e.track.Status(), failures: e.track.Failures(), pause: t.interval}
	}
	e.track.Observe(observation, now)
	if status := e.track.Status(); e.track.Decided() && status != e.sinceStatus {
		e.since, e.sinceStatus = now, status
	}
	news := e.track.Decided() && e.statement() != e.written
	if news {
		b.notify()
	}
	if !t.costly {
		took = 0
	}
	return outcome{e.track.Status(), e.track.Failures(), news, e.track.Pause(t.interval, took)}
}

func (e *entry) statement() statement {
	basis := e.track.Basis()
	return statement{e.track.Status(), basis.Reason, basis.Message}
}

// learn starts from the condition on the node. It ignores a status from before the last boot
// of the node.
func (e *entry) learn(node nodestatus.Node, conditionType string, boot time.Time) {
	prior, found := node.Condition(conditionType)
	if !found {
		return
	}
	if prior.Status == nodestatus.True && !prior.LastHeartbeatTime.Before(boot) {
		e.track.Adopt(check.Observation{Result: check.Healthy, Reason: prior.Reason, Message: prior.Message})
	}
	if !e.track.Decided() || e.track.Status() == prior.Status {
		e.since, e.sinceStatus = prior.LastTransitionTime, prior.Status
	}
}

// notify wakes the writer.
func (b *board) notify() {
	select {
	case b.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// learn starts from the conditions on the node, once. Another UID means a new node: every condition transitions now.
func (b *board) learn(node nodestatus.Node, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.learned
	b.learned = &node
	for conditionType, e := range b.entries {
		switch {
		case before == nil:
			e.learn(node, conditionType, b.boot)
		case before.Metadata.UID != node.Metadata.UID:
			e.since, e.written = now, statement{}
		}
	}
	b.notify()
}

// uid returns the UID of the node that was read last; empty if none was read.
func (b *board) uid() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.learned == nil {
		return ""
	}
	return b.learned.Metadata.UID
}

// urgency is how soon the conditions must be written.
type urgency int

const (
	nothing urgency = iota
	messageOnly
	change
)

// conditions returns all decided conditions that the API server does not reject, and the urgency of a write.
func (b *board) conditions(now time.Time) ([]nodestatus.Condition, urgency) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []nodestatus.Condition
	most := nothing
	for conditionType, e := range b.entries {
		if !e.track.Decided() || now.Before(e.rejectedUntil) {
			continue
		}
		current := e.statement()
		switch {
		case current.status != e.written.status:
			most = change
		case current != e.written:
			most = max(most, messageOnly)
		}
		all = append(all, nodestatus.Condition{
			Type:               conditionType,
			Status:             current.status,
			Reason:             current.reason,
			Message:            current.message,
			LastHeartbeatTime:  now.UTC().Truncate(time.Second),
			LastTransitionTime: e.since.UTC().Truncate(time.Second),
		})
	}
	return all, most
}

// anyNotTrue reports whether a condition is not True, so that a write may follow soon.
func (b *board) anyNotTrue() bool {
	return b.find(func(e *entry) bool { return e.track.Status() != nodestatus.True }) != nil
}

// unreadyPeers returns a peers check whose condition is not True; nil if there is none.
func (b *board) unreadyPeers() *task {
	return b.find(func(e *entry) bool { return e.task.kind == "peers" && e.track.Status() != nodestatus.True })
}

// anyRejected reports whether writes leave out a condition.
func (b *board) anyRejected(now time.Time) bool {
	return b.find(func(e *entry) bool { return now.Before(e.rejectedUntil) }) != nil
}

// find returns the task of an entry that matches; nil if none does.
func (b *board) find(is func(*entry) bool) *task {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if is(e) {
			return e.task
		}
	}
	return nil
}

// reject leaves a condition out of writes until the given time, so that the other conditions are written.
func (b *board) reject(conditionType string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, found := b.entries[conditionType]; found {
		e.rejectedUntil = until
	}
}

// wrote records the written conditions, also for a check that is removed and added again.
func (b *board) wrote(conditions []nodestatus.Condition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, condition := range conditions {
		if e, found := b.entries[condition.Type]; found {
			e.written = statement{condition.Status, condition.Reason, condition.Message}
		}
		if b.learned != nil {
			b.learned.SetCondition(condition)
		}
	}
}
