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
	// relogInterval is the minimum time between two log messages about the same failure.
	relogInterval = time.Minute
	// keepAliveInterval is the time between two empty requests while a condition is not True: an open
	// connection saves some tenths of a second under a small CPU limit when the condition becomes True.
	keepAliveInterval = time.Minute
	// rejectionRetryInterval is the time before a condition that the API server rejected is written again.
	rejectionRetryInterval = time.Minute

	// minMessageInterval is the minimum time between a write and one that changes a message but no status.
	// It doubles with each such write, up to maxMessageInterval: an endpoint that alternates between two
	// errors must not cause a stream of writes.
	minMessageInterval = 10 * time.Second
	maxMessageInterval = 5 * time.Minute
)

// writer is the only goroutine that sends requests to the API server.
type writer struct {
	client    *nodestatus.Client
	board     *board
	heartbeat func() time.Duration // the period
	metrics   *Metrics

	asked         time.Time // last response of the API server
	wrote         time.Time // last successful write
	spread        float64   // random factor of the heartbeat period
	messageWrites int       // writes that changed only messages, since the last change of a status
	failures      int
	logged        string
	loggedAt      time.Time
}

// run writes until the context ends. Every attempt reads the board again, so that after an outage only
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

// reportEach writes one condition per request, so that a rejected condition does not block the others.
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

// idle waits for the next write, and keeps the connection open while a condition is not True.
// It returns false if the node does not exist.
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
		slog.InfoContext(ctx, "Node was recreated; all conditions transition now")
		w.board.learn(node, time.Now())
	}
}

// waiting returns the time until the next write; a change of a status is written immediately.
func (w *writer) waiting(urgency urgency, conditions int) time.Duration {
	beat := time.Until(w.wrote.Add(time.Duration(float64(w.heartbeat()) * w.spread)))
	switch {
	case conditions == 0:
		return time.Hour // until a check decides and wakes the writer
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
		slog.InfoContext(ctx, "Wrote the conditions for the first time", "conditions", len(conditions))
	} else if w.failures > 0 {
		slog.InfoContext(ctx, "Wrote the conditions after failed attempts", "failures", w.failures)
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

// logFailure logs a failure. It logs the same failure again only after relogInterval.
func (w *writer) logFailure(ctx context.Context, err error, about ...any) {
	if err.Error() == w.logged && time.Since(w.loggedAt) < relogInterval {
		return
	}
	w.logged, w.loggedAt = err.Error(), time.Now()
	slog.WarnContext(ctx, "Writing the conditions failed; retrying", append(about, "error", err, "hint", hint(err))...)
}

// hint returns the next step for the user.
func hint(err error) string {
	var rejection *nodestatus.StatusError
	switch {
	case !errors.As(err, &rejection):
		return "the API server is not reachable; no action needed if it is restarting"
	case strings.Contains(rejection.Message, "ValidatingAdmissionPolicy"):
		return "an admission policy rejects the write; its message is in the error; see docs/reference/policies.md"
	}
	switch rejection.Code {
	case http.StatusUnauthorized:
		return "the token is not valid; check that it is mounted and issued by this cluster"
	case http.StatusForbidden:
		return `grant this account "patch" on "nodes/status"`
	case http.StatusNotFound:
		return "the node does not exist or is not registered yet; check NODE_NAME"
	}
	return "see the error; the reporter retries with backoff"
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

// jitter returns the duration plus or minus up to 10%, so that reporters do not run in step.
func jitter(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - d/10 + rand.N(d/5)
}

// pause waits for d, or until the context ends or the channel receives.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
}
