package reporter

import (
	"sync"
	"time"

	"github.com/readygate/readygate/internal/check"
	"github.com/readygate/readygate/internal/nodestatus"
)

// rewording is the least time between two writes that change words and no status: an
// endpoint that fails in turns in two ways must not become a stream of writes.
const rewording = 10 * time.Second

// board is what the checks have found so far and what of it has been written. Check loops
// write on it, the writer reads it.
type board struct {
	mu      sync.Mutex
	entries map[string]*entry // by condition type
	learned *nodestatus.Node  // as it was when this process began; nil: not known yet
	boot    time.Time
	wake    chan struct{} // tells the writer to look
}

// entry is one condition.
type entry struct {
	text  string // of the task that it is about
	track *Track
	// since is when the condition got the status of that time: what lastTransitionTime says.
	since       time.Time
	sinceStatus string
	written     statement
}

// statement is what a condition says, without times.
type statement struct{ status, reason, message string }

func newBoard(boot time.Time) *board {
	return &board{entries: map[string]*entry{}, boot: boot, wake: make(chan struct{}, 1)}
}

// put makes room for a check, in place of another of the same type, whose status stays.
func (b *board) put(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &entry{text: t.text, track: NewTrack(t.thresholds)}
	if before, replaced := b.entries[t.conditionType]; replaced {
		e.track.Adopt(before.track.Status())
		e.since, e.sinceStatus, e.written = before.since, before.sinceStatus, before.written
	} else if b.learned != nil {
		e.learn(*b.learned, t.conditionType, b.boot)
	}
	b.entries[t.conditionType] = e
}

// remove forgets a condition. On the node it stays as it is.
func (b *board) remove(conditionType string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, conditionType)
}

// observe takes an observation of a check into account. It says whether something is to be
// written because of it, and how long the check should pause.
func (b *board) observe(t *task, observation check.Observation, took time.Duration, now time.Time) (news bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, found := b.entries[t.conditionType]
	if !found || e.text != t.text {
		return false, t.interval // a run of a check that has been replaced meanwhile
	}
	e.track.Observe(observation, now)
	e.turn(now)
	if news = e.track.Decided() && e.statement() != e.written; news {
		b.notify()
	}
	if !t.costly {
		took = 0
	}
	return news, e.track.Pause(t.interval, took)
}

// turn notes the time of a transition.
func (e *entry) turn(now time.Time) {
	if status := e.track.Status(); e.track.Decided() && status != e.sinceStatus {
		e.since, e.sinceStatus = now, status
	}
}

func (e *entry) statement() statement {
	said := e.track.Said()
	return statement{e.track.Status(), said.Reason, said.Message}
}

// learn takes over what the node says of a condition. A word from before the last boot of the
// node is none: whatever it speaks of has ended since.
func (e *entry) learn(node nodestatus.Node, conditionType string, boot time.Time) {
	prior, found := node.Condition(conditionType)
	if !found {
		return
	}
	if !prior.LastHeartbeatTime.Before(boot) {
		e.track.Adopt(prior.Status)
	}
	if !e.track.Decided() || e.track.Status() == prior.Status {
		e.since, e.sinceStatus = prior.LastTransitionTime, prior.Status
	}
}

// notify wakes the writer.
func (b *board) notify() {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake already
	}
}

// learn takes over what the node says, once. A node of another UID is a new one, on which every condition
// begins now.
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

// uid is that of the node that was learned.
func (b *board) uid() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.learned == nil {
		return ""
	}
	return b.learned.Metadata.UID
}

// urgency is how soon something must be written.
type urgency int

const (
	nothing urgency = iota
	words
	change
)

// conditions are all conditions that something is known of, and how urgent it is to say so.
func (b *board) conditions(now time.Time) ([]nodestatus.Condition, urgency) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []nodestatus.Condition
	most := nothing
	for conditionType, e := range b.entries {
		if !e.track.Decided() {
			continue
		}
		said := e.statement()
		switch {
		case said.status != e.written.status:
			most = change
		case said != e.written:
			most = max(most, words)
		}
		all = append(all, nodestatus.Condition{
			Type:               conditionType,
			Status:             said.status,
			Reason:             said.reason,
			Message:            said.message,
			LastHeartbeatTime:  now.UTC().Truncate(time.Second),
			LastTransitionTime: e.since.UTC().Truncate(time.Second),
		})
	}
	return all, most
}

// expecting says whether there is a condition that is not True, and so may be soon.
func (b *board) expecting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.track.Status() != nodestatus.True {
			return true
		}
	}
	return false
}

// wrote notes what was written.
func (b *board) wrote(conditions []nodestatus.Condition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, condition := range conditions {
		if e, found := b.entries[condition.Type]; found {
			e.written = statement{condition.Status, condition.Reason, condition.Message}
		}
	}
}

// status is what a condition is to say: Unknown before the first decision.
func (b *board) status(conditionType string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, found := b.entries[conditionType]; found {
		return e.track.Status()
	}
	return nodestatus.Unknown
}
