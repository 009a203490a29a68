package reporter

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/readygate/readygate/internal/nodestatus"
)

const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 15 * time.Second
	// sayAgain is how often a failure that goes on is logged.
	sayAgain = time.Minute
	// keepWarm is how often the API server is asked while a condition is about to become
	// True: a connection that is open by then saves most of a second under a small CPU limit.
	keepWarm = time.Minute
)

// writer is the one goroutine that talks to the API server.
type writer struct {
	client    *nodestatus.Client
	board     *board
	heartbeat func() time.Duration
	metrics   *Metrics

	asked    time.Time // when the API server last answered
	failures int
	logged   string
	loggedAt time.Time
}

// run writes until the context is over. What it is about to say is looked at anew for every
// try, so that after an outage the latest truth is written, once.
func (w *writer) run(ctx context.Context) {
	known := false
	var last time.Time // of the last write
	beat := time.Duration(0)
	for ctx.Err() == nil {
		if !known {
			known = w.learn(ctx)
			continue
		}
		conditions, urgency := w.board.conditions(time.Now())
		if wait := waiting(urgency, last, beat, len(conditions)); wait > 0 {
			known = w.rest(ctx, wait)
			continue
		}
		node, err := w.client.Report(ctx, conditions)
		if err != nil {
			known = !isGone(err)
			w.failed(ctx, err)
			continue
		}
		w.succeeded(ctx)
		w.board.wrote(conditions)
		last, beat = w.asked, jitter(w.heartbeat())
		w.recognize(ctx, node)
	}
}

// rest waits until there may be something to write, and keeps the connection warm where it
// will be needed. It says whether the node is still known.
func (w *writer) rest(ctx context.Context, wait time.Duration) bool {
	cold := time.Until(w.asked.Add(keepWarm))
	if !w.board.expecting() || wait < cold {
		pause(ctx, wait, w.board.wake)
		return true
	}
	if cold > 0 {
		pause(ctx, cold, w.board.wake)
		return true
	}
	node, err := w.client.Touch(ctx)
	if err != nil {
		w.failed(ctx, err)
		return !isGone(err)
	}
	w.asked, w.failures = time.Now(), 0
	w.recognize(ctx, node)
	return true
}

// recognize notices a node that was deleted and created anew.
func (w *writer) recognize(ctx context.Context, node nodestatus.Node) {
	if node.Metadata.UID != w.board.uid() {
		slog.InfoContext(ctx, "the node was created anew: its conditions begin now")
		w.board.learn(node, time.Now())
	}
}

// waiting is how long the next write may wait; a change does not wait at all.
func waiting(urgency urgency, last time.Time, beat time.Duration, conditions int) time.Duration {
	switch {
	case conditions == 0:
		return time.Hour // until there is something to say
	case urgency == change || last.IsZero():
		return 0
	case urgency == words:
		return min(time.Until(last.Add(rewording)), time.Until(last.Add(beat)))
	}
	return time.Until(last.Add(beat))
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

func (w *writer) succeeded(ctx context.Context) {
	w.asked = time.Now()
	w.metrics.wrote(writeSuccess)
	if w.failures > 0 {
		slog.InfoContext(ctx, "written again", "failed", w.failures)
	}
	w.failures, w.logged = 0, ""
}

// failed says what went wrong, and waits: longer and longer, and not all reporters alike.
func (w *writer) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	w.metrics.wrote(writeError)
	if err.Error() != w.logged || time.Since(w.loggedAt) > sayAgain {
		slog.WarnContext(ctx, "writing the condition", "error", err, "hint", hint(err))
		w.logged, w.loggedAt = err.Error(), time.Now()
	}
	wait := min(lastRetry, firstRetry<<min(w.failures, 10))
	w.failures++
	wait = wait/2 + rand.N(wait)
	var refused *nodestatus.RefusalError
	if errors.As(err, &refused) && refused.RetryAfter > wait {
		wait = min(refused.RetryAfter, time.Minute)
	}
	pause(ctx, wait, nil)
}

// hint says what to do about a refusal.
func hint(err error) string {
	var refused *nodestatus.RefusalError
	if !errors.As(err, &refused) {
		return "the API server is away; it is tried again"
	}
	switch refused.Code {
	case http.StatusUnauthorized:
		return "the token is not valid: is it mounted, and of this cluster?"
	case http.StatusForbidden:
		return `grant this account "patch" on "nodes/status", and see that no admission policy forbids it`
	case http.StatusNotFound:
		return "there is no such node (yet): is NODE_NAME right?"
	}
	return "it is tried again"
}

func isGone(err error) bool {
	var refused *nodestatus.RefusalError
	return errors.As(err, &refused) && refused.Code == http.StatusNotFound
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
