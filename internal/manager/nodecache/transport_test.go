package nodecache_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/manager/nodecache"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answering is a transport that returns this response to each request.
func answering(status int, contentType string, body io.Reader) http.RoundTripper {
	return nodecache.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}, nil
	}))
}

func ask(t *testing.T, transport http.RoundTripper, method, path string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://api"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	return body, errors.Join(err, resp.Body.Close())
}

const inProtobuf = "application/vnd.kubernetes.protobuf"

func TestResponsesToNodeWritesAreCut(t *testing.T) {
	node := encode(t, realistic())
	for name, c := range map[string]struct {
		status       int
		contentType  string
		method, path string
		cut          bool
	}{
		"a node that was written":     {http.StatusOK, inProtobuf, http.MethodPatch, "/api/v1/nodes/n", true},
		"behind a proxy with a path":  {http.StatusOK, inProtobuf, http.MethodPatch, "/clusters/a/api/v1/nodes/n", true},
		"a node that was read":        {http.StatusOK, inProtobuf, http.MethodGet, "/api/v1/nodes/n", false},
		"something else":              {http.StatusOK, inProtobuf, http.MethodPatch, "/api/v1/namespaces/nodes", false},
		"JSON":                        {http.StatusOK, "application/json", http.MethodPatch, "/api/v1/nodes/n", false},
		"a rejection":                 {http.StatusForbidden, inProtobuf, http.MethodPatch, "/api/v1/nodes/n", false},
		"a body that is not a node's": {http.StatusOK, inProtobuf, http.MethodPatch, "/api/v1/nodes/n", false},
	} {
		t.Run(name, func(t *testing.T) {
			sent, want := node, node
			if strings.HasPrefix(name, "a body") {
				sent, want = []byte("k8s\x00 or not"), []byte("k8s\x00 or not")
			}
			if c.cut {
				want = nodecache.Cut(node)
			}
			got, err := ask(t, answering(c.status, c.contentType, bytes.NewReader(sent)), c.method, c.path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v, got %d bytes, want %d", err, len(got), len(want))
			}
		})
	}
}

func TestTruncatedResponseFails(t *testing.T) {
	cut := errors.New("the line is cut")
	got, err := ask(t, answering(http.StatusOK, inProtobuf, io.MultiReader(strings.NewReader("k8s"), failing{cut})), http.MethodPatch, "/api/v1/nodes/n")
	if !errors.Is(err, cut) || string(got) != "k8s" {
		t.Errorf("read %q, %v", got, err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Concurrent responses do not share memory.
func TestConcurrentResponsesDoNotShareMemory(t *testing.T) {
	filler := newFiller(4)
	var wg sync.WaitGroup
	for range 50 {
		sent := filled(filler)
		data := encode(t, sent)
		wg.Go(func() {
			for range 20 {
				got, err := ask(t, answering(http.StatusOK, inProtobuf, bytes.NewReader(data)), http.MethodPatch, "/api/v1/nodes/n")
				if err != nil || decode(t, got).(*corev1.Node).Name != sent.Name {
					t.Errorf("%v, the body of another response", err)
				}
			}
		})
	}
	wg.Wait()
}
