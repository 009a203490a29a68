package testenv_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/testenv"
)

const nodes = "/api/v1/nodes/"

// answer is a response, with the requested part of the body.
type answer struct {
	code             int
	retryAfter, body string
}

// through starts a proxy before a server, and returns a function that sends a request through it and reads the
// first bytes of the response.
func through(t *testing.T, server http.HandlerFunc) (*testenv.Proxy, func(method, path string, bytes int) answer) {
	t.Helper()
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	proxy, err := testenv.StartProxy(&rest.Config{Host: upstream.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	client, err := rest.HTTPClientFor(proxy.Config())
	if err != nil {
		t.Fatal(err)
	}
	return proxy, func(method, path string, bytes int) answer {
		req, err := http.NewRequestWithContext(t.Context(), method, proxy.Config().Host+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return answer{}
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return answer{}
		}
		defer resp.Body.Close() //nolint:errcheck // only read
		body := make([]byte, bytes)
		if _, err := io.ReadFull(resp.Body, body); err != nil {
			t.Error(err)
		}
		return answer{resp.StatusCode, resp.Header.Get("Retry-After"), string(body)}
	}
}

func TestAProxyPassesOnAndCounts(t *testing.T) {
	proxy, send := through(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	send(http.MethodPatch, nodes+"a", 0)
	send(http.MethodPatch, nodes+"a/status", 0)
	if got := send(http.MethodPatch, nodes+"b", len(nodes+"b")); got.body != nodes+"b" {
		t.Errorf("answered %s", got.body)
	}
	if got := proxy.Counts(); got["patch nodes"] != 2 || got["patch nodes/status"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestProxyCountsRequestsInFlight(t *testing.T) {
	const together = 3
	arrived, answer := make(chan struct{}), make(chan struct{})
	proxy, send := through(t, func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-answer
	})
	for range 2 {
		var sent sync.WaitGroup
		for range together {
			sent.Go(func() { send(http.MethodPatch, nodes+"a", 0) })
		}
		for range together {
			<-arrived
		}
		for range together {
			answer <- struct{}{}
		}
		sent.Wait()
	}
	if got := proxy.MostUnderWay(testenv.Arrival.IsWork); got != together {
		t.Errorf("%d were under way at one time, want %d", got, together)
	}
}

func TestWatchesStreamThroughAProxy(t *testing.T) {
	_, send := through(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	if got := send(http.MethodGet, "/api/v1/nodes?watch=true", len("first")); got.body != "first" {
		t.Errorf("read %s", got.body)
	}
}

func TestProxyInjectsFaults(t *testing.T) {
	const lease = "/apis/coordination.k8s.io/v1/namespaces/x/leases/y"
	proxy, send := through(t, func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct {
		fault             testenv.Fault
		node, lease, rule int
	}{
		"nothing":          {testenv.Fault{}, 200, 200, 200},
		"all but leases":   {testenv.Fault{Code: 429, RetryAfter: 7}, 429, 200, 429},
		"one kind, slowly": {testenv.Fault{Code: 500, Delay: time.Millisecond, Of: func(a testenv.Arrival) bool { return a.Resource == "nodes" }}, 500, 200, 200},
	} {
		proxy.Set(tc.fault)
		for path, want := range map[string]int{nodes + "a": tc.node, lease: tc.lease, "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules/r": tc.rule} {
			got := send(http.MethodGet, path, 0)
			if got.code != want {
				t.Errorf("%s: %s is answered with %d, want %d", name, path, got.code, want)
			}
			if (got.retryAfter == "7") != (want == 429) {
				t.Errorf("%s: %s has Retry-After %q", name, path, got.retryAfter)
			}
		}
	}
}
