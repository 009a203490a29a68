package turnstile

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// defaultPause is for a refusal that does not say when to come again: client-go does not wait
// then.
const defaultPause = time.Second

// inTime is how long a server may take to answer before it is thought to have too much to do.
const inTime = 5 * time.Second

type transport struct {
	turnstile *Turnstile
	next      http.RoundTripper
}

// RoundTrip sends the request when it has a place, which it keeps until the body of the answer
// is read or closed: so long the server is busy with it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWatch(req) {
		return t.next.RoundTrip(req)
	}
	r, err := t.turnstile.enter(req.Context(), needOf(req))
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as every RoundTripper must; the error is the context's
		}
		return nil, err
	}
	sent := time.Now()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.turnstile.leave(r, outcomeOf(err, time.Since(sent)), 0)
		return nil, err
	}
	o, pause := answered(resp)
	if o == refused {
		t.turnstile.leave(r, refused, pause)
		return resp, nil
	}
	resp.Body = &body{ReadCloser: resp.Body, turnstile: t.turnstile, pass: r, outcome: o}
	return resp, nil
}

// WrappedRoundTripper lets others find what they know how to configure.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// outcomeOf an error: a server that does not answer in time has too much to do. One that is
// not there needs no care, and a request that ends soon after it was sent had waited long before.
func outcomeOf(err error, took time.Duration) outcome {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() && took >= inTime {
		return refused
	}
	return unknown
}

// answered says whether the answer is one after which client-go waits, or too many requests, or
// a time-out of the server, and how long to pause. Other errors of the server, or of something
// before it, say nothing.
func answered(resp *http.Response) (outcome, time.Duration) {
	code := resp.StatusCode
	if code != http.StatusTooManyRequests && code < http.StatusInternalServerError {
		return served, 0
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	switch {
	case err == nil && seconds >= 0:
		return refused, min(time.Duration(seconds)*time.Second, longestPause)
	case code == http.StatusTooManyRequests:
		return refused, defaultPause
	case code == http.StatusGatewayTimeout:
		return refused, 0
	default:
		return unknown, 0
	}
}

// body gives the place back when it ends.
type body struct {
	io.ReadCloser
	turnstile *Turnstile
	pass      *pass
	outcome   outcome
	ended     atomic.Bool
}

// Read reads from the answer.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close ends the answer.
func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *body) end() {
	if b.ended.CompareAndSwap(false, true) {
		b.turnstile.leave(b.pass, b.outcome, 0)
	}
}
