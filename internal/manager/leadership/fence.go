package leadership

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrFenced is the error of a request that the fence did not send.
var ErrFenced = errors.New("not sent: the lease may have expired, and another manager may lead")

// Fence rejects writes of this process while it may not hold the lease. Leader election detects a lost lease
// only when it next runs: a process that was suspended meanwhile, by a signal or with its machine, would still
// send the writes that it had decided on. It is safe for concurrent use.
type Fence struct {
	clock          clock.PassiveClock
	duration       time.Duration
	requestTimeout time.Duration

	mu      sync.Mutex
	renewed time.Time
	// predecessorUntil is the end of the time in which writes of the previous leader may still take effect.
	predecessorUntil time.Time
	// inFlight counts writes without a response, and unansweredUntil is the end of the time in which a write
	// that failed without a response may still take effect.
	inFlight        int
	unansweredUntil time.Time
}

// maxTransit is the maximum time from sending a request to its arrival at the API server.
const maxTransit = 10 * time.Second

// NewFence returns a closed fence. Each renewal of the lease opens it for the duration, which must be shorter
// than the lease duration by maxTransit or more. The request timeout is the --request-timeout of the API server.
func NewFence(clock clock.PassiveClock, duration, requestTimeout time.Duration) *Fence {
	return &Fence{clock: clock, duration: duration, requestTimeout: requestTimeout}
}

// UnansweredTimeout is how long a write without a response may still take effect.
func (f *Fence) UnansweredTimeout() time.Duration { return f.requestTimeout + maxTransit }

// Renew opens the fence. The time is that at which the renewal of the lease was sent: other candidates
// count from its arrival, which is later.
func (f *Fence) Renew(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = sent
}

// Close closes the fence.
func (f *Fence) Close() { f.Renew(time.Time{}) }

// Open reports whether this process holds the lease for certain.
func (f *Fence) Open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

func (f *Fence) open() bool {
	return !f.renewed.IsZero() && elapsed(f.renewed, f.clock.Now()) < f.duration
}

// TakeOver records that the lease was acquired from a leader that did not release it: its writes may take
// effect for another request timeout.
func (f *Fence) TakeOver(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.predecessorUntil = at.Add(f.requestTimeout)
}

// PredecessorUntil is the end of the time in which writes of the previous leader may still take effect; zero if
// it released the lease.
func (f *Fence) PredecessorUntil() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.predecessorUntil
}

// Idle reports that no write of this process can still take effect. Only then may the lease be released: the
// next leader of a released lease does not wait.
func (f *Fence) Idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inFlight == 0 && !f.clock.Now().Before(f.unansweredUntil)
}

// begin counts a write if the fence is open. Check and count are one step, so that the lease is not released
// between them.
func (f *Fence) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return false
	}
	f.inFlight++
	return true
}

// end counts a write as done. Without a conclusive response it may still take effect.
func (f *Fence) end(answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
	if !answered {
		f.unansweredUntil = f.clock.Now().Add(f.UnansweredTimeout())
	}
}

// elapsed is the longer of the monotonic and the wall clock time: the monotonic clock stops while the machine
// sleeps, and the wall clock can be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// Wrap returns a transport that sends PATCH and PUT only while the fence is open; it fits rest.Config.Wrap. It
// must be the innermost wrapper: a request that waits after the check is not checked again.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{fence: f, next: next}
}

type transport struct {
	fence *Fence
	next  http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPatch && req.Method != http.MethodPut {
		return t.next.RoundTrip(req)
	}
	err := req.Context().Err() // no write begins after its context has ended
	if err == nil && !t.fence.begin() {
		err = ErrFenced
	}
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as the contract of RoundTripper requires
		}
		return nil, err
	}
	answered := false
	defer func() { t.fence.end(answered) }() // also if the transport panics
	ctx, cancel := delayCancel(req.Context())
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	answered = resp.StatusCode < http.StatusInternalServerError
	resp.Body = &body{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// cancelDelay is how long a write in flight may continue after the stop signal: the process still holds the
// lease, and with a response the next leader need not wait. It is shorter than the shutdown timeout of the manager.
const cancelDelay = 8 * time.Second

// delayCancel returns a context that is cancelled cancelDelay after ctx. It has the deadline of ctx.
func delayCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	delayed := context.WithoutCancel(ctx)
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		delayed, cancel = context.WithDeadline(delayed, deadline)
	} else {
		delayed, cancel = context.WithCancel(delayed)
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(cancelDelay, cancel) })
	return delayed, func() {
		stop()
		cancel()
	}
}

// body is a response body that cancels the context of its request when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body and cancels the context.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// WrappedRoundTripper returns the wrapped transport, so that client-go can configure it.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
