package reporter

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 15 * time.Second
	// relogInterval is how often the same failure is logged.
	relogInterval = time.Minute
	// keepAliveInterval is how often the API server is asked while a condition is about to become
	// True: a connection that is open by then saves some tenths of a second under a small CPU
	// limit.
	keepAliveInterval = time.Minute
	// rejectionRetryInterval is how long a condition that the API server rejected waits before the next attempt.
	rejectionRetryInterval = time.Minute

	// minMessageInterval is the least time between a write and one that changes a message but no status.
	// It doubles each time, up to maxMessageInterval: an endpoint that fails in turns in two ways
	// must not become a stream of writes.
	minMessageInterval = 10 * time.Second
	maxMessageInterval = 5 * time.Minute
)

// writer is the only goroutine that sends requests to the API server.
type writer struct {
	client    *nodestatus.Client
	board     *board
	heartbeat func() time.Duration // the period
	metrics   *Metrics

	asked         time.Time // when the API server last answered
	wrote         time.Time // when it last took a write of all conditions
	spread        float64   // of the heartbeat: a little more or less than the period
	messageWrites int       // writes of other words since the last change
	failures      int
	logged        string
	loggedAt      time.Time
}

// run writes until the context ends. Every attempt reads the conditions again, so that after an outage only
// the latest state is written.
func (w *writer) run(ctx context.Context) {
	w.spread = 1
	for known := false; ctx.Err() == nil; {
		if !known {
			known = w.learn(ctx)
			continue
		}
		conditions, urgency := w.board.conditions(time.Now())
		if wait := w.waiting(urgency, len(conditions)); wait > 0 {
			known = w.idle(ctx, wait)
			continue
		}
		known = w.report(ctx, conditions, urgency)
	}
}

// report writes the conditions. It returns false if the node does not exist.
func (w *writer) report(ctx context.Context, conditions []nodestatus.Condition, urgency urgency) bool {
	node, err := w.client.Report(ctx, conditions)
	if err == nil {
		w.succeeded(ctx, conditions, urgency)
		w.checkUID(ctx, node)
		return true
	}
	if isRejected(err) && len(conditions) > 1 {
		w.reportEach(ctx, conditions, urgency)
		return true
	}
	w.failed(ctx, err)
	return !isNotFound(err)
}

// reportEach writes conditions one by one, so that a rejected one does not block the others.
func (w *writer) reportEach(ctx context.Context, conditions []nodestatus.Condition, urgency urgency) {
	for i, condition := range conditions {
		_, err := w.client.Report(ctx, conditions[i:i+1])
		switch {
		case err == nil:
			w.succeeded(ctx, conditions[i:i+1], urgency)
		case isRejected(err):
			w.metrics.wrote(writeError)
			w.board.reject(condition.Type, time.Now().Add(rejectionRetryInterval))
			w.logFailure(ctx, err, "condition", condition.Type)
		default:
			w.failed(ctx, err)
			return
		}
	}
}

// idle waits until there may be something to write, and keeps the connection warm where it
// will be needed. It returns false if the node does not exist.
func (w *writer) idle(ctx context.Context, wait time.Duration) bool {
	if w.board.anyRejected(time.Now()) {
		wait = min(wait, rejectionRetryInterval)
	}
	cold := time.Until(w.asked.Add(keepAliveInterval))
	if !w.board.anyNotTrue() || wait < cold {
		pause(ctx, wait, w.board.wake)
		return true
	}
	if cold > 0 {
		pause(ctx, cold, w.board.wake)
		return true
	}
	node, err := w.client.Report(ctx, nil)
	if err != nil {
		w.failed(ctx, err)
		return !isNotFound(err)
	}
	w.asked, w.failures = time.Now(), 0
	w.checkUID(ctx, node)
	return true
}

// checkUID detects a node that was deleted and created again.
func (w *writer) checkUID(ctx context.Context, node nodestatus.Node) {
	if node.Metadata.UID != w.board.uid() {
		slog.InfoContext(ctx, "the node was created again: its conditions begin now")
		w.board.learn(node, time.Now())
	}
}

// waiting is how long the next write may wait; a change does not wait at all.
func (w *writer) waiting(urgency urgency, conditions int) time.Duration {
	beat := time.Until(w.wrote.Add(time.Duration(float64(w.heartbeat()) * w.spread)))
	switch {
	case conditions == 0:
		return time.Hour // until a check has decided
	case urgency == change:
		return 0
	case urgency == messageOnly:
		return min(beat, time.Until(w.wrote.Add(min(minMessageInterval<<min(w.messageWrites, 10), maxMessageInterval))))
	}
	return beat
}

func (w *writer) learn(ctx context.Context) bool {
	node, err := w.client.Learn(ctx)
	if err != nil {
		w.failed(ctx, err)
		return false
	}
	w.asked, w.failures = time.Now(), 0
	w.board.learn(node, w.asked)
	return true
}

func (w *writer) succeeded(ctx context.Context, conditions []nodestatus.Condition, urgency urgency) {
	if w.wrote.IsZero() {
		slog.InfoContext(ctx, "written for the first time", "conditions", len(conditions))
	} else if w.failures > 0 {
		slog.InfoContext(ctx, "written again", "failed", w.failures)
	}
	now := time.Now()
	w.asked, w.wrote, w.spread = now, now, 0.9+0.2*rand.Float64()
	w.failures, w.logged = 0, ""
	switch urgency {
	case change:
		w.messageWrites = 0
	case messageOnly:
		w.messageWrites++
	}
	w.metrics.wrote(writeSuccess)
	w.board.wrote(conditions)
}

// failed logs the error and backs off, with jitter.
func (w *writer) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.metrics.wrote(writeError)
	w.logFailure(ctx, err)
	pause(ctx, w.backOff(err), nil)
}

func (w *writer) backOff(err error) time.Duration {
	wait := min(lastRetry, firstRetry<<min(w.failures, 10))
	w.failures++
	var rejection *nodestatus.StatusError
	if errors.As(err, &rejection) {
		wait = max(wait, min(rejection.RetryAfter, time.Minute))
	}
	return wait/2 + rand.N(wait)
}

// logFailure logs a failure, and the same failure again only after relogInterval.
func (w *writer) logFailure(ctx context.Context, err error, about ...any) {
	if err.Error() == w.logged && time.Since(w.loggedAt) < relogInterval {
		return
	}
	w.logged, w.loggedAt = err.Error(), time.Now()
	slog.WarnContext(ctx, "could not write", append(about, "error", err, "hint", hint(err))...)
}

// hint is the next step after an error.
func hint(err error) string {
	var rejection *nodestatus.StatusError
	switch {
	case !errors.As(err, &rejection):
		return "the API server is away; it is tried again"
	case strings.Contains(rejection.Message, "ValidatingAdmissionPolicy"):
		return "an admission policy forbids it, and its words are in the error: see docs/reference/policies.md, what a reporter may do"
	}
	switch rejection.Code {
	case http.StatusUnauthorized:
		return "the token is not valid: is it mounted, and of this cluster?"
	case http.StatusForbidden:
		return `grant this account "patch" on "nodes/status"`
	case http.StatusNotFound:
		return "there is no such node (yet): is NODE_NAME right?"
	}
	return "it is tried again"
}

func isNotFound(err error) bool { return codeOf(err) == http.StatusNotFound }

// isRejected reports whether the API server rejected the contents of the write.
func isRejected(err error) bool {
	code := codeOf(err)
	return code == http.StatusForbidden || code == http.StatusUnprocessableEntity || code == http.StatusBadRequest
}

func codeOf(err error) int {
	var rejection *nodestatus.StatusError
	if errors.As(err, &rejection) {
		return rejection.Code
	}
	return 0
}

// jitter is the duration, a tenth more or less, so that reporters do not act in step.
func jitter(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - d/10 + rand.N(d/5)
}

// pause waits, at most until the context is over or something comes from the channel.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
}
