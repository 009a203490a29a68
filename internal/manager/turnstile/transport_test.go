package turnstile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// server answers requests without a network.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

func answer(code int, retryAfter string) *http.Response {
	resp := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}"))}
	if retryAfter != "" {
		resp.Header.Set("Retry-After", retryAfter)
	}
	return resp
}

func request(t testing.TB, url string) *http.Request {
	return httptest.NewRequestWithContext(t.Context(), http.MethodPatch, url, http.NoBody)
}

func TestWhatARequestIsAbout(t *testing.T) {
	for url, want := range map[string]need{
		"/api/v1/nodes/worker-1":                                 node,
		"/k8s/clusters/c-1/api/v1/nodes/worker-1?fieldManager=x": node,
		"/api/v1/nodes":                                          other,
		"/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules/nodes/status":        other,
		"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/readygate":     other,
		"/apis/authentication.k8s.io/v1/tokenreviews":                                   other,
		"/apis/events.k8s.io/v1/namespaces/default/events":                              event,
		"/apis/events.k8s.io/v1/namespaces/default/events/worker-1.17?fieldManager=xyz": event,
	} {
		if got := needOf(request(t, url)); got != want {
			t.Errorf("%s is of need %s, want %s", url, got, want)
		}
	}
}

func TestWatchesPassFreely(t *testing.T) {
	gate := New(1)
	if _, err := gate.enter(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	through := gate.Wrap(server(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, ""), nil }))
	for url, passes := range map[string]bool{
		"/api/v1/nodes?watch=true":                                 true,
		"/api/v1/nodes?allowWatchBookmarks=true&watch=1":           true,
		"/api/v1/nodes?watch=false":                                false,
		"/api/v1/nodes?allowWatchBookmarks=true":                   false,
		"/api/v1/nodes?fieldSelector=metadata.name%3Dwatch%3Dtrue": false,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		resp, err := through.RoundTrip(request(t, url).WithContext(ctx))
		cancel()
		if (err == nil) != passes {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
}

func TestWhatCountsAsARefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		code       int
		retryAfter string
		outcome    outcome
		pause      time.Duration
	}{
		"too many requests":                         {http.StatusTooManyRequests, "2", refused, 2 * time.Second},
		"too many requests, come when you like":     {http.StatusTooManyRequests, "", refused, time.Second},
		"unavailable, come again":                   {http.StatusServiceUnavailable, "1", refused, time.Second},
		"unavailable":                               {http.StatusServiceUnavailable, "", unknown, 0},
		"an error, come again":                      {http.StatusInternalServerError, "1", refused, time.Second},
		"an error":                                  {http.StatusInternalServerError, "", unknown, 0},
		"the server's own time-out":                 {http.StatusGatewayTimeout, "", refused, 0},
		"a conflict":                                {http.StatusUnprocessableEntity, "1", served, 0},
		"a good answer":                             {http.StatusOK, "", served, 0},
		"a pause that nobody would wait for":        {http.StatusTooManyRequests, "86400", refused, 30 * time.Second},
		"a date, which API servers do not send":     {http.StatusTooManyRequests, "Wed, 21 Oct 2026 07:28:00 GMT", refused, time.Second},
		"a pause that has ended before it was said": {http.StatusTooManyRequests, "-1", refused, time.Second},
	} {
		resp := answer(tc.code, tc.retryAfter)
		if got, pause := answered(resp); got != tc.outcome || pause != tc.pause {
			t.Errorf("%s: outcome %d, pause %v", name, got, pause)
		}
		_ = resp.Body.Close()
	}
	for err, want := range map[error]outcome{
		fmt.Errorf("patching: %w", context.DeadlineExceeded):                   refused,
		&net.OpError{Op: "read", Err: context.DeadlineExceeded}:                refused,
		fmt.Errorf("patching: %w", context.Canceled):                           unknown,
		&net.OpError{Op: "dial", Err: fmt.Errorf("connection refused: %d", 1)}: unknown,
	} {
		if got := outcomeOf(err, time.Minute); got != want {
			t.Errorf("%v: outcome %d, want %d", err, got, want)
		}
		if got := outcomeOf(err, time.Second); got != unknown {
			t.Errorf("%v, soon after it was sent: outcome %d", err, got)
		}
	}
}

func TestAPlaceIsKeptUntilTheAnswerIsRead(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser){
		"read to its end": func(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) },
		"closed":          func(body io.ReadCloser) { _ = body.Close() },
	} {
		gate := New(1)
		through := gate.Wrap(server(func(*http.Request) (*http.Response, error) { return answer(http.StatusOK, ""), nil }))
		for range 2 {
			resp, err := through.RoundTrip(request(t, "/api/v1/nodes/n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := gate.places.underWay[node]; got != 1 {
				t.Errorf("%s: %d under way before", name, got)
			}
			end(resp.Body)
			if got := gate.places.underWay[node]; got != 0 {
				t.Errorf("%s: %d under way after", name, got)
			}
			_ = resp.Body.Close() // again, as some do
		}
	}
}

type closer struct{ closed bool }

func (c *closer) Read([]byte) (int, error) { return 0, io.EOF }
func (c *closer) Close() error             { c.closed = true; return nil }

func TestARequestThatIsNeverSentIsClosed(t *testing.T) {
	gate, body := New(1), &closer{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	through := gate.Wrap(server(func(*http.Request) (*http.Response, error) {
		t.Error("it was sent")
		return answer(http.StatusOK, ""), nil
	}))
	resp, err := through.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPatch, "/api/v1/nodes/n", body))
	if err == nil {
		_ = resp.Body.Close()
		t.Error("no error")
	}
	if !body.closed {
		t.Error("its body is still open")
	}
}

// gather are the metrics by name and need.
func gather(t *testing.T, gate *Turnstile) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(gate)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series := []string{strings.TrimPrefix(family.GetName(), "node_readiness_client_")}
			for _, label := range metric.GetLabel() {
				series = append(series, label.GetValue())
			}
			got[strings.Join(series, " ")] = metric.GetGauge().GetValue()
		}
	}
	return got
}

func TestMetricsSayHowFullItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := New(8)
		r, _ := gate.enter(t.Context(), node)
		gate.leave(r, refused, time.Second)
		for range 3 {
			go func() { _, _ = gate.enter(t.Context(), event) }()
		}
		synctest.Wait()
		got := gather(t, gate)
		for series, want := range map[string]float64{"places": 4, "requests_under_way event": 0, "requests_waiting event": 3, "requests_waiting node": 0} {
			if got[series] != want {
				t.Errorf("%s is %v, want %v", series, got[series], want)
			}
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	req := request(b, "/api/v1/nodes/worker-1?fieldManager=readygate")
	bare := server(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	for name, through := range map[string]http.RoundTripper{"bare": bare, "turnstile": New(20).Wrap(bare)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := through.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_ = resp.Body.Close()
			}
		})
	}
}
