package turnstile

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Turnstile is shared by all transports that it wraps: its places are for all of them
// together. It is also a collector of metrics.
type Turnstile struct {
	mu     sync.Mutex
	places *places
}

// New makes a turnstile with so many places, at least one.
func New(most int) *Turnstile { return &Turnstile{places: newPlaces(most)} }

// Wrap lets the requests of a transport go through the turnstile; it fits rest.Config.Wrap.
func (t *Turnstile) Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{turnstile: t, next: next}
}

// WritesNodes says whether a request about a node is under way or waits.
func (t *Turnstile) WritesNodes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places.underWay[node] > 0 || t.places.waiting[node].Len() > 0
}

// enter returns when the request is let in, or its context ends: then it left the queue.
func (t *Turnstile) enter(ctx context.Context, n need) (*pass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &pass{need: n}
	if t.queue(r) {
		return r, nil
	}
	select {
	case <-r.let:
		return r, nil
	case <-ctx.Done():
		t.giveUp(r)
		return nil, ctx.Err()
	}
}

// queue says whether the request was let in at once.
func (t *Turnstile) queue(r *pass) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.places.arrive(r, now)
	if r.waits != nil {
		t.letIn(now) // it may be more needed than those who wait
	}
	if r.waits != nil {
		r.let = make(chan struct{})
	}
	return r.waits == nil
}

// giveUp ends a request whose context ended; it may have been let in just then.
func (t *Turnstile) giveUp(r *pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.waits != nil {
		t.places.giveUp(r)
		return
	}
	now := time.Now()
	t.places.leave(r, unknown, 0, now)
	t.letIn(now)
}

// leave ends a request that was let in. After a pause, those who wait are let in.
func (t *Turnstile) leave(r *pass, o outcome, pause time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.places.leave(r, o, pause, now)
	t.letIn(now)
	if pause > 0 {
		time.AfterFunc(pause, t.wake)
	}
}

func (t *Turnstile) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.letIn(time.Now())
}

// letIn lets in all who can be.
func (t *Turnstile) letIn(now time.Time) {
	for r := t.places.next(now); r != nil; r = t.places.next(now) {
		if r.let != nil {
			close(r.let)
		}
	}
}
