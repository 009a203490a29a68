package leadership_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/readygate/readygate/internal/manager/leadership"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestAFenceIsOpenFromTheRequestThatRenewedIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	fence := leadership.NewFence(clock, 10*time.Second, time.Minute)
	after := func(d time.Duration) { clock.SetTime(noon.Add(d)) }
	want := func(what string, holds bool) {
		t.Helper()
		if fence.Open() != holds {
			t.Errorf("%s: holds: %v", what, !holds)
		}
	}
	want("before the first lease", false)
	after(3 * time.Second)
	fence.Renew(noon)
	want("renewed", true)
	after(10*time.Second - 1)
	want("just in time", true)
	after(10 * time.Second)
	want("too late", false)
	fence.Renew(noon.Add(9 * time.Second))
	want("renewed again", true)
	fence.Close()
	want("given up", false)
}

// While a machine sleeps, its monotonic clock stops and its wall clock does not.
func TestFenceClosesWhileTheMachineSleeps(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	fence := leadership.NewFence(clock, 10*time.Second, time.Minute)
	fence.Renew(clock.Now())
	clock.SetTime(clock.Now().Round(0).Add(time.Minute)) // no monotonic reading
	if fence.Open() {
		t.Error("holds after a minute of sleep")
	}
}

func TestAClosedFenceRejectsWrites(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(noon)
	fence := leadership.NewFence(clock, 10*time.Second, time.Minute)
	client := &http.Client{Transport: fence.Wrap(http.DefaultTransport)}
	ask := func(method string) error {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	for _, method := range []string{http.MethodPatch, http.MethodPut} {
		if err := ask(method); !errors.Is(err, leadership.ErrFenced) {
			t.Errorf("%s of a manager that does not lead: %v", method, err)
		}
	}
	fence.Renew(noon)
	for _, method := range []string{http.MethodPatch, http.MethodPut, http.MethodGet, http.MethodPost} {
		if err := ask(method); err != nil {
			t.Errorf("%s of a leader: %v", method, err)
		}
	}
	fence.Close()
	for _, method := range []string{http.MethodGet, http.MethodPost} { // reads, and the reviews of metrics requests
		if err := ask(method); err != nil {
			t.Errorf("%s of a manager that does not lead: %v", method, err)
		}
	}
	if want := "PATCH PUT GET POST GET POST"; strings.Join(got, " ") != want {
		t.Errorf("the server got %v, want %s", got, want)
	}
}

// A manager may release the lease only if none of its writes can still take effect.
func TestAWriteWithoutAResponseMayStillTakeEffect(t *testing.T) {
	code, hang := http.StatusOK, make(chan struct{})
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			arrived <- struct{}{}
			<-hang
		}
		w.WriteHeader(code)
	}))
	defer server.Close()
	clock := clocktesting.NewFakePassiveClock(noon)
	fence := leadership.NewFence(clock, time.Hour, 3*time.Minute) // the request timeout of the API server
	fence.Renew(noon)
	client := &http.Client{Transport: fence.Wrap(http.DefaultTransport)}
	patch := func(path string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	want := func(what string, clean bool) {
		t.Helper()
		if fence.Idle() != clean {
			t.Errorf("%s: clean: %v", what, !clean)
		}
	}
	want("before", true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		patch("/hangs")
	}()
	<-arrived
	want("a write is under way", false)
	close(hang)
	<-done
	want("it was answered", true)
	code = http.StatusConflict
	patch("/")
	want("one was refused", true)
	code = http.StatusGatewayTimeout
	patch("/")
	want("one write without a response", false)
	clock.SetTime(noon.Add(189 * time.Second))
	want("it may still happen", false)
	clock.SetTime(noon.Add(190 * time.Second))
	want("it can happen no more", true)
	if fence.TakeOver(noon); !fence.PredecessorUntil().Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("writes of the previous leader may take effect until %v", fence.PredecessorUntil())
	}
}

// server responds when the channel allows it, unless the request is cancelled.
type server struct{ arrived, may chan struct{} }

func (s server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.arrived <- struct{}{}
	select {
	case <-s.may:
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("done"))}, req.Context().Err()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// patch sends a write and reads the response.
func patch(ctx context.Context, through http.RoundTripper) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://example.com", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	resp, err := through.RoundTrip(req)
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(resp.Body)
	return string(answer), errors.Join(err, resp.Body.Close())
}

// After the stop signal, a write in flight gets its response within cancelDelay, and no write begins.
func TestAWriteInFlightContinuesAtShutdown(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fence := leadership.NewFence(clock.RealClock{}, time.Hour, time.Minute)
				fence.Renew(time.Now())
				api := server{arrived: make(chan struct{}, 2), may: make(chan struct{})}
				through := fence.Wrap(api)
				ctx, stop := context.WithCancel(t.Context())
				var answer string
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					answer, err = patch(ctx, through)
				}()
				<-api.arrived
				stop()
				stopped := time.Now()
				synctest.Wait()
				select {
				case <-done:
					t.Fatalf("cancelled: %v", err)
				default:
				}
				if answers {
					close(api.may)
				}
				<-done
				switch took := time.Since(stopped); {
				case answers && (answer != "done" || err != nil || took > 0):
					t.Errorf("got %q, %v after %v", answer, err, took)
				case !answers && (!errors.Is(err, context.Canceled) || took != 8*time.Second):
					t.Errorf("cancelled with %v after %v", err, took)
				}
				if _, err := patch(ctx, through); !errors.Is(err, context.Canceled) || len(api.arrived) > 0 {
					t.Errorf("a write began after the stop signal: %v", err)
				}
				if fence.Idle() != answers {
					t.Errorf("clean: %t", fence.Idle())
				}
			})
		})
	}
}

// A write with a deadline fails at its deadline.
func TestAWriteKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fence := leadership.NewFence(clock.RealClock{}, time.Hour, time.Minute)
		fence.Renew(time.Now())
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := patch(ctx, fence.Wrap(server{arrived: make(chan struct{}, 1)}))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		if fence.Idle() {
			t.Error("idle, although the write has no response")
		}
	})
}
