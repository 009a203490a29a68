// Package tenure knows for how long this process is sure to lead, and lets it write only then.
//
// An election tells a leader that it has lost only when it looks. One that was stopped for a while,
// with its machine or by a signal, goes on where it was: with a request that it had decided to
// send, while another leads already and counts without it.
package tenure

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrEnded is why a request was not sent: the lease may have run out.
var ErrEnded = errors.New("not sent: the lease may have run out, and another manager may lead")

// Tenure is the time from one renewal of a lease to when it must be renewed again. It is safe for
// concurrent use.
type Tenure struct {
	clock          clock.PassiveClock
	lasts          time.Duration
	requestTimeout time.Duration

	mu      sync.Mutex
	renewed time.Time
	late    time.Time
	// sending is how many writes are under way, and unanswered until when one that got no answer may
	// still happen.
	sending    int
	unanswered time.Time
}

// onTheWay is how long a request may take to arrive there.
const onTheWay = 10 * time.Second

// New makes a tenure that has not begun. It lasts for so long after each renewal, which must be
// shorter than others wait, by the time that a request may take to arrive. The request timeout is the
// longest time that an API server works on one request.
func New(clock clock.PassiveClock, lasts, requestTimeout time.Duration) *Tenure {
	return &Tenure{clock: clock, lasts: lasts, requestTimeout: requestTimeout}
}

// Unanswered is for how long a write without an answer may still happen.
func (t *Tenure) Unanswered() time.Duration { return t.requestTimeout + onTheWay }

// Renew begins the tenure anew. The lease was renewed by a request that was sent at this time:
// others count from when they see it, which is later.
func (t *Tenure) Renew(sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = sent
}

// Succeed says that the lease has just been taken from somebody who did not give it back: what was
// sent before may still happen for a while.
func (t *Tenure) Succeed(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = at.Add(t.requestTimeout)
}

// Late is until when writes of whoever led before may still happen; zero if that is not to be
// feared.
func (t *Tenure) Late() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.late
}

// End ends the tenure.
func (t *Tenure) End() { t.Renew(time.Time{}) }

// Clean says that nothing that was written can still happen: all of it was answered, or is too old.
// Only then may the lease be given back: whoever takes one that was given back fears nothing.
func (t *Tenure) Clean() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sending == 0 && !t.clock.Now().Before(t.unanswered)
}

// begin says that a write is sent, if the tenure holds. Both are one step: a lease must not be given
// back between them.
func (t *Tenure) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holds() {
		return false
	}
	t.sending++
	return true
}

// end says that a write is over. Without an answer that says what became of it, it may still happen.
func (t *Tenure) end(answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sending--
	if !answered {
		t.unanswered = t.clock.Now().Add(t.Unanswered())
	}
}

// Holds says whether this process leads for sure.
func (t *Tenure) Holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds()
}

func (t *Tenure) holds() bool {
	return !t.renewed.IsZero() && elapsed(t.renewed, t.clock.Now()) < t.lasts
}

// elapsed is the longer one of what two clocks say: the one of the machine stands still while it
// sleeps, and that on the wall can be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// Wrap lets a transport change and replace objects only while the tenure holds; it fits
// rest.Config.Wrap. It must be the last thing before the network: what waits after it was let
// through is not looked at again.
func (t *Tenure) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{tenure: t, next: next}
}

type transport struct {
	tenure *Tenure
	next   http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPatch && req.Method != http.MethodPut {
		return t.next.RoundTrip(req)
	}
	err := req.Context().Err() // what was not begun before the end is not begun after it
	if err == nil && !t.tenure.begin() {
		err = ErrEnded
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as every RoundTripper must
		}
		return nil, err
	}
	answered := false
	defer func() { t.tenure.end(answered) }() // also of a transport that panics
	ctx, cancel := lingering(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answered = resp.StatusCode < http.StatusInternalServerError
	resp.Body = &body{ReadCloser: resp.Body, done: cancel}
	return resp, nil
}

// linger is how long a write that is under way may go on when the process is told to stop. It still
// leads then; who comes after it shall not have to wait for what became of the write. A process is
// given longer than that to stop.
const linger = 8 * time.Second

// lingering is a context that ends a while after the other one is cancelled. It has the same deadline.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	later := context.WithoutCancel(ctx)
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		later, cancel = context.WithDeadline(later, deadline)
	} else {
		later, cancel = context.WithCancel(later)
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

// body is an answer whose context ends with it.
type body struct {
	io.ReadCloser
	done context.CancelFunc
}

// Close ends the answer.
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// WrappedRoundTripper lets others find what they know how to configure.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
