package reporter

import (
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// Thresholds are what it takes to change the status.
type Thresholds struct {
	// Success is how many healthy observations in a row make a node's condition True.
	Success int
	// Failure is how many others in a row make a True condition False, and HoldDown how long
	// they must have gone on. A condition that is not True needs one.
	Failure  int
	HoldDown time.Duration
}

// Track decides what observations of one check mean. It is pure: time comes in with them.
type Track struct {
	thresholds Thresholds

	status string // True, False or, before the first decision, Unknown
	latest check.Observation
	said   check.Observation // what the status goes back to

	streak      int
	streakSince time.Time
}

// NewTrack knows nothing yet.
func NewTrack(thresholds Thresholds) *Track {
	return &Track{thresholds: thresholds, status: nodestatus.Unknown}
}

// Adopt takes over that the condition was True before this process started, and why, as if
// this process had observed it: after a restart the same thresholds apply.
func (t *Track) Adopt(said check.Observation) {
	if t.status == nodestatus.True {
		return
	}
	t.status, t.said = nodestatus.True, said
	if t.streak > 0 {
		t.decide(t.streakSince)
	}
}

// Observe takes an observation into account.
func (t *Track) Observe(observation check.Observation, now time.Time) {
	if t.streak == 0 || observation.Healthy() != t.latest.Healthy() {
		t.streak, t.streakSince = 0, now
	}
	t.latest = observation
	t.streak++
	t.decide(now)
}

func (t *Track) decide(now time.Time) {
	switch {
	case t.latest.Healthy() && (t.streak >= t.thresholds.Success || t.status == nodestatus.True):
		t.status, t.said = nodestatus.True, t.latest
	case t.latest.Healthy(): // not often enough yet
	case t.status != nodestatus.True:
		t.status, t.said = nodestatus.False, t.latest
	case t.streak >= t.thresholds.Failure && now.Sub(t.streakSince) >= t.thresholds.HoldDown:
		t.status, t.said = nodestatus.False, t.latest
	}
}

// Status is True, False, or Unknown before the first decision.
func (t *Track) Status() string { return t.status }

// Basis is the observation that decided the status.
func (t *Track) Basis() check.Observation { return t.said }

// Decided reports whether the status is known.
func (t *Track) Decided() bool { return t.status != nodestatus.Unknown }

// Failures is the number of consecutive failures of a condition that is still True.
func (t *Track) Failures() int {
	if t.status == nodestatus.True && !t.latest.Healthy() {
		return t.streak
	}
	return 0
}

const (
	// startInterval is the pause between two checks while the condition is not True.
	startInterval = 500 * time.Millisecond
	// failingInterval is the pause when the condition is True and the last check failed.
	failingInterval = 5 * time.Second
	// costlyPauseFactor is how many times as long as it took the pause after a costly check is.
	costlyPauseFactor = 4
)

// Pause is how long to wait before the next check, after one that took so long; the time that
// a check takes counts only where it is costly.
func (t *Track) Pause(interval, costly time.Duration) time.Duration {
	switch {
	case t.status != nodestatus.True:
		return min(interval, max(startInterval, costlyPauseFactor*costly))
	case t.Failures() > 0:
		return min(interval, failingInterval)
	}
	return interval
}
