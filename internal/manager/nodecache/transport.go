package nodecache

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Wrap returns a transport that cuts the responses to writes of nodes: each has the whole node. It fits rest.Config.Wrap.
func Wrap(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && isNode(req, resp) {
		shorten(resp)
	}
	return resp, err
}

// WrappedRoundTripper returns the wrapped transport, so that client-go can configure it.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isNode reports whether a response has a written node.
func isNode(req *http.Request, resp *http.Response) bool {
	return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/api/v1/nodes/") &&
		resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Encoding") == "" &&
		strings.HasPrefix(resp.Header.Get("Content-Type"), runtime.ContentTypeProtobuf)
}

// answer is the cut body of a response, in pooled memory.
type answer struct {
	whole bytes.Buffer
	kept  []byte
	io.Reader
}

var answers = sync.Pool{New: func() any { return new(answer) }}

// shorten replaces the body of a response by its cut data. If the body cannot be read, the new body returns the error.
func shorten(resp *http.Response) {
	a := answers.Get().(*answer)
	a.whole.Reset()
	_, failed := a.whole.ReadFrom(resp.Body)
	failed = errors.Join(failed, resp.Body.Close())
	if failed != nil {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(bytes.Clone(a.whole.Bytes())), broken{failed}))
		answers.Put(a)
		return
	}
	kept := cut(a.whole.Bytes(), a.kept)
	if len(kept) < a.whole.Len() {
		a.kept = kept
	}
	a.Reader = bytes.NewReader(kept)
	resp.Body, resp.ContentLength = a, int64(len(kept))
	resp.Header.Set("Content-Length", strconv.Itoa(len(kept)))
}

// Close returns the memory to the pool. A Read after it fails.
func (a *answer) Close() error {
	if a.Reader != nil {
		a.Reader = nil
		answers.Put(a)
	}
	return nil
}

// Read reads the cut data.
func (a *answer) Read(p []byte) (int, error) {
	if a.Reader == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return a.Reader.Read(p)
}

// broken is a reader that fails.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
