package live

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Connection is the state of a fleet's connection to its cluster. The zero value means connected.
type Connection struct {
	// Lost is when the connection was lost; zero while connected. The fleet's data may be as old as this.
	Lost time.Time
	// Problem is the reason.
	Problem string
}

// Disconnected records that these objects cannot be listed or watched.
func (f *Fleet) Disconnected(what, problem string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.connection
	f.silent[what] = struct{}{}
	f.connection.Problem = problem
	if before.Lost.IsZero() {
		f.connection.Lost = now
	}
	f.notifyConnection(before)
}

// Connected records that these objects are listed or watched again. The fleet is connected when this holds for all
// kinds.
func (f *Fleet) Connected(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.connection
	if delete(f.silent, what); len(f.silent) == 0 {
		f.connection = Connection{}
	}
	f.notifyConnection(before)
}

func (f *Fleet) notifyConnection(before Connection) {
	if f.connection != before {
		f.notify(func(c *changes) { c.connection = true })
	}
}

// watchedTransport observes the API server's responses to informers. The informers' watch error handler is not enough:
// it is not called while connections are refused, nor on recovery. A separate probe is not enough either: it may succeed
// long before the informers do.
type watchedTransport struct {
	fleet *Fleet
	next  http.RoundTripper
}

// RoundTrip sends a request to list or watch objects.
func (e watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	what := request.URL.Path
	response, err := e.next.RoundTrip(request)
	switch {
	case errors.Is(request.Context().Err(), context.Canceled): // the caller has canceled
	case err != nil:
		e.fleet.Disconnected(what, err.Error(), time.Now())
	case response.StatusCode == http.StatusGone: // the watch is too old: the informer lists again
	case response.StatusCode >= http.StatusBadRequest:
		refused := apierrors.NewGenericServerResponse(response.StatusCode, "watch", schema.GroupResource{Resource: path.Base(what)}, "", "", 0, true)
		e.fleet.Disconnected(what, inWords(what, refused).Error(), time.Now())
	default:
		e.fleet.Connected(what)
		response.Body = &watchedBody{ReadCloser: response.Body, lose: func(err error) { e.fleet.Disconnected(what, err.Error(), time.Now()) }}
	}
	return response, err
}

// watchedBody is a response body that reports read errors.
type watchedBody struct {
	io.ReadCloser
	lose   func(error)
	closed atomic.Bool
}

// Read reads the body. EOF is not a lost connection: the informer sends the next request at once.
func (h *watchedBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) && !h.closed.Load() {
		h.lose(err)
	}
	return n, err
}

// Close closes the body. Errors of later reads are ignored.
func (h *watchedBody) Close() error {
	h.closed.Store(true)
	return h.ReadCloser.Close()
}
