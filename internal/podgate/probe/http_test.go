package probe_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
	"github.com/readygate/readygate/internal/version"
)

// got returns the result for a URL.
func got(t testing.TB, url string) podrule.Answer {
	t.Helper()
	return asked(t, &probe.Asker{}, podrule.Probe{Kind: podrule.HTTP, URL: url})
}

func TestHTTPProbeResultFollowsTheStatusCode(t *testing.T) {
	t.Parallel()
	server := web(t, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(code)
	})
	for code, want := range map[int]podrule.Answer{
		200: yes, 204: yes, 299: yes,
		300: no("returned 300, and podgate does not follow redirects"),
		304: no("returned 304, and podgate does not follow redirects"),
		400: no("returned 400"), 404: no("returned 404"), 500: no("returned 500"), 503: no("returned 503"),
	} {
		expect(t, got(t, server.URL+"/"+strconv.Itoa(code)), want)
	}
}

func TestTheRequestIsAPlainGet(t *testing.T) {
	t.Parallel()
	var seen atomic.Pointer[http.Request]
	server := web(t, func(_ http.ResponseWriter, r *http.Request) { seen.Store(r) })
	expect(t, got(t, server.URL+"/pods/shop/web%2F1?full=1"), yes)
	r := seen.Load()
	for what, pair := range map[string][2]string{
		"method":     {r.Method, "GET"},
		"URL":        {r.RequestURI, "/pods/shop/web%2F1?full=1"},
		"user agent": {r.UserAgent(), "readygate-podgate/" + version.Version},
		"encoding":   {r.Header.Get("Accept-Encoding"), ""},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %q, want %q", what, pair[0], pair[1])
		}
	}
}

// The probe does not follow redirects, including invalid ones.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"/next", "http://localhost:1/", "http://192.0.2.1/", "http://[", ""} {
		var times atomic.Int32
		server := web(t, func(w http.ResponseWriter, _ *http.Request) {
			if times.Add(1) == 1 {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
			}
		})
		expect(t, got(t, server.URL), no("returned 302, and podgate does not follow redirects"))
		if times.Load() != 1 {
			t.Errorf("to %q: asked %d times", to, times.Load())
		}
	}
}

// Components use self-signed certificates.
func TestAnyCertificateOfLocalhostIsAccepted(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	expect(t, got(t, server.URL), yes)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	expect(t, got(t, "https://localhost:"+port), yes)
}

func TestEndpointWithoutValidHTTPIsNotReady(t *testing.T) {
	t.Parallel()
	plain := web(t, func(http.ResponseWriter, *http.Request) {})
	garbage := listen(t)
	go func() {
		for {
			conn, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(conn, "what do you want?\r\n")
			_ = conn.Close()
		}
	}()
	for url, why := range map[string]string{
		"http://" + refused(t):                         "connection refused",
		"http://" + garbage.Addr().String():            "the response is not HTTP",
		strings.Replace(plain.URL, "http", "https", 1): "the response is not TLS",
		"http://127.0.0.1:99999":                       "the port of the URL is not valid",
		"http://192.0.2.1:9099":                        "the URL is not one of the node's localhost",
		"https://[2001:db8::1]:9099":                   "the URL is not one of the node's localhost",
		"http://127.0.0.1:9099/%zz":                    "the URL is not valid",
	} {
		expect(t, got(t, url), no(why))
	}
}

// Felix, stopped, accepts connections and never answers.
func TestHTTPCheckFailsAfterTwoSeconds(t *testing.T) {
	t.Parallel()
	server := web(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	expect(t, got(t, server.URL), no("no response within 2s"))
}

// The body does not matter: an endless or missing one changes nothing.
func TestABodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(w http.ResponseWriter, r *http.Request){
		"without an end": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		},
		"that does not come": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			server := web(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				more(w, r)
			})
			expect(t, got(t, server.URL), yes)
			select {
			case <-ended:
			case <-time.After(long):
				t.Error("the connection is still open")
			}
		})
	}
}

func TestNoConnectionIsKept(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	closed := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	for range 10 {
		expect(t, got(t, server.URL), yes)
	}
	for range 10 {
		select {
		case <-closed:
		case <-time.After(long):
			t.Fatal("a connection is still open")
		}
	}
	if opened.Load() != 10 {
		t.Errorf("10 questions opened %d connections", opened.Load())
	}
}

// This test does not run in parallel: the environment is shared.
func TestHTTPProbeUsesNoProxyOfTheEnvironment(t *testing.T) {
	var times atomic.Int32
	proxy := web(t, func(http.ResponseWriter, *http.Request) { times.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	for _, url := range []string{"http://192.0.2.1:9099", "https://192.0.2.1:9099"} {
		expect(t, got(t, url), no("the URL is not one of the node's localhost"))
	}
	if times.Load() != 0 {
		t.Errorf("the proxy was asked %d times", times.Load())
	}
}
