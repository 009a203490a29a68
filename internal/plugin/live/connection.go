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

// Connection says whether a fleet still hears of its cluster. The zero value says yes.
type Connection struct {
	// Lost is since when it does not: what the fleet shows may be as old as that.
	Lost time.Time
	// Problem is why, in words.
	Problem string
}

// Disconnected notes that these objects cannot be listed or watched.
func (f *Fleet) Disconnected(what, problem string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.connection
	f.silent[what] = struct{}{}
	f.connection.Problem = problem
	if before.Lost.IsZero() {
		f.connection.Lost = now
	}
	f.tellConnection(before)
}

// Connected notes that these objects are listed or watched again. The connection is back when all are.
func (f *Fleet) Connected(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.connection
	if delete(f.silent, what); len(f.silent) == 0 {
		f.connection = Connection{}
	}
	f.tellConnection(before)
}

func (f *Fleet) tellConnection(before Connection) {
	if f.connection != before {
		f.tell(func(c *changes) { c.connection = true })
	}
}

// watchedTransport observes the responses of the API server to informers. Their own handler of errors is not
// enough: they try again without a word while connections are refused, and never say when they
// are back. A probe would not do either: it may be answered long before they are.
type watchedTransport struct {
	fleet *Fleet
	next  http.RoundTripper
}

// RoundTrip sends a request to list or watch objects.
func (e watchedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	what := request.URL.Path
	response, err := e.next.RoundTrip(request)
	switch {
	case errors.Is(request.Context().Err(), context.Canceled): // nobody wants to know any more
	case err != nil:
		e.fleet.Disconnected(what, err.Error(), time.Now())
	case response.StatusCode == http.StatusGone: // too much has happened since: it lists again
	case response.StatusCode >= http.StatusBadRequest:
		refused := apierrors.NewGenericServerResponse(response.StatusCode, "watch", schema.GroupResource{Resource: path.Base(what)}, "", "", 0, true)
		e.fleet.Disconnected(what, inWords(what, refused).Error(), time.Now())
	default:
		e.fleet.Connected(what)
		response.Body = &watchedBody{ReadCloser: response.Body, lose: func(err error) { e.fleet.Disconnected(what, err.Error(), time.Now()) }}
	}
	return response, err
}

// watchedBody is a response body that may break off.
type watchedBody struct {
	io.ReadCloser
	lose   func(error)
	closed atomic.Bool
}

// Read reads on. The end of an answer is no loss: the next request follows at once.
func (h *watchedBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) && !h.closed.Load() {
		h.lose(err)
	}
	return n, err
}

// Close says that the rest is not wanted.
func (h *watchedBody) Close() error {
	h.closed.Store(true)
	return h.ReadCloser.Close()
}
