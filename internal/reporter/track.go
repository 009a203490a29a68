package reporter

import (
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// Thresholds are the requirements for a change of the status.
type Thresholds struct {
	// Success is the number of consecutive healthy results that set the condition to True.
	Success int
	// Failure is the number of consecutive failures that set a True condition to False, and HoldDown the
	// time for which they must continue. A condition that is not True becomes False with one failure.
	Failure  int
	HoldDown time.Duration
}

// Track decides the status of a condition from the results of one check. It is pure: the caller passes the time.
type Track struct {
	thresholds Thresholds

	status string // True, False or, before the first decision, Unknown
	latest check.Observation
	basis  check.Observation // the result that decided the status

	streak      int
	streakSince time.Time
}

// NewTrack returns a track whose status is Unknown.
func NewTrack(thresholds Thresholds) *Track {
	return &Track{thresholds: thresholds, status: nodestatus.Unknown}
}

// Adopt starts from a condition that was True before this process started, as if
// this process had seen the result: after a restart the same thresholds apply.
func (t *Track) Adopt(basis check.Observation) {
	if t.status == nodestatus.True {
		return
	}
	t.status, t.basis = nodestatus.True, basis
	if t.streak > 0 {
		t.decide(t.streakSince)
	}
}

// Observe records a result and decides the status.
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
		t.status, t.basis = nodestatus.True, t.latest
	case t.latest.Healthy(): // successThreshold not reached
	case t.status != nodestatus.True:
		t.status, t.basis = nodestatus.False, t.latest
	case t.streak >= t.thresholds.Failure && now.Sub(t.streakSince) >= t.thresholds.HoldDown:
		t.status, t.basis = nodestatus.False, t.latest
	}
}

// Status is True, False, or Unknown before the first decision.
func (t *Track) Status() string { return t.status }

// Basis returns the result that decided the status.
func (t *Track) Basis() check.Observation { return t.basis }

// Decided reports whether the status is True or False.
func (t *Track) Decided() bool { return t.status != nodestatus.Unknown }

// Failures returns the number of consecutive failures while the condition is True.
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
	// costlyPauseFactor is the minimum pause after a costly check, as a multiple of the check's duration.
	costlyPauseFactor = 4
)

// Pause returns the time until the next check. costly is the duration of the last run if the check is costly, else zero.
func (t *Track) Pause(interval, costly time.Duration) time.Duration {
	switch {
	case t.status != nodestatus.True:
		return min(interval, max(startInterval, costlyPauseFactor*costly))
	case t.Failures() > 0:
		return min(interval, failingInterval)
	}
	return interval
}
