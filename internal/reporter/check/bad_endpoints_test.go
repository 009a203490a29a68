package check_test

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/neterror"
	"github.com/readygate/readygate/internal/reporter/check"
)

// bad is a misbehaving endpoint.
type bad struct {
	// spec starts the endpoint and says how it is asked.
	spec func(t testing.TB) check.Spec
	// want is what is found. The endpoint is called THERE.
	want check.Observation
	// hangs: the check needs all of its timeout.
	hangs bool
}

func at(address string) check.Spec { return check.Spec{HTTP: &check.HTTP{URL: "http://" + address}} }

func atHTTPS(address string, config check.TLS) check.Spec {
	return check.Spec{HTTP: &check.HTTP{URL: "https://" + address, TLS: config}}
}

// raw is an endpoint that handles each connection with a function.
func raw(answer func(net.Conn)) func(testing.TB) check.Spec {
	return func(t testing.TB) check.Spec { t.Helper(); return at(accept(t, answer)) }
}

const slowly = 20 * time.Millisecond

var badEndpoints = map[string]bad{
	"one that accepts and never answers": {
		spec:  raw(hang),
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"one that accepts, and never speaks TLS": {
		spec: func(t testing.TB) check.Spec {
			return atHTTPS(accept(t, hang), check.TLS{InsecureSkipVerify: true})
		},
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"one that drops packets": {
		spec:  func(t testing.TB) check.Spec { return at(blackhole(t)) },
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"headers that drip": {
		spec:  raw(forever("HTTP/1.1 200 OK\r\n", "X", slowly, new(atomic.Int64))),
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"a status that drips": {
		spec:  raw(forever("H", " ", slowly, new(atomic.Int64))),
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"headers without end": {
		spec: raw(forever("HTTP/1.1 200 OK\r\n", "X-Y: z\r\n", 0, new(atomic.Int64))),
		want: noAnswer("THERE: the response has too many headers"),
	},
	"one header without end": {
		spec: raw(forever("HTTP/1.1 200 OK\r\nX: ", "y", 0, new(atomic.Int64))),
		want: noAnswer("THERE: the response has too many headers"),
	},
	"a status without end": {
		spec: raw(forever("HTTP/1.1 200 ", "OK", 0, new(atomic.Int64))),
		want: noAnswer("THERE: the response has too many headers"),
	},
	"first answers without end": {
		spec: raw(forever("HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n", 0, new(atomic.Int64))),
		want: noAnswer("THERE: the response has too many headers"),
	},
	"a body that drips": {
		spec: raw(forever("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "x", slowly, new(atomic.Int64))),
		want: answers("THERE returned 200"),
	},
	"a body that never comes": {
		spec: raw(func(conn net.Conn) {
			say("HTTP/1.1 503 Not Now\r\nContent-Length: 100000\r\n\r\n")(conn)
			hang(conn)
		}),
		want: isNotReady("THERE returned 503"),
	},
	"a redirect to itself": {
		spec: func(t testing.TB) check.Spec {
			return at(web(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }).Listener.Addr().String())
		},
		want: isNotReady("THERE redirects too often"),
	},
	"a redirect to nowhere": {
		spec: raw(say("HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n")),
		want: noAnswer("THERE: no valid response"),
	},
	"a certificate of an unknown authority": {
		spec: func(t testing.TB) check.Spec {
			certificate := newAuthority(t).issue(t, "127.0.0.1", time.Now().Add(time.Hour))
			return atHTTPS(secure(t, certificate, ok).Listener.Addr().String(), check.TLS{CAFile: newAuthority(t).file(t)})
		},
		want: noAnswer("THERE: the certificate is signed by an unknown authority: set caFile, or insecureSkipVerify"),
	},
	"a certificate that has expired": {
		spec: func(t testing.TB) check.Spec {
			ca := newAuthority(t)
			certificate := ca.issue(t, "127.0.0.1", time.Now().Add(-time.Minute))
			return atHTTPS(secure(t, certificate, ok).Listener.Addr().String(), check.TLS{CAFile: ca.file(t)})
		},
		want: noAnswer("THERE: the certificate is not valid: it has expired, or is not valid yet"),
	},
	"a certificate for another name": {
		spec: func(t testing.TB) check.Spec {
			ca := newAuthority(t)
			certificate := ca.issue(t, "agent.example", time.Now().Add(time.Hour))
			return atHTTPS(secure(t, certificate, ok).Listener.Addr().String(), check.TLS{CAFile: ca.file(t)})
		},
		want: noAnswer("THERE: the certificate is for another name: set serverName"),
	},
	"one that wants a certificate of ours": {
		spec: func(t testing.TB) check.Spec {
			address := acceptTLS(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, hang)
			return atHTTPS(address, check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: TLS handshake failed, remote error: handshake failure"),
	},
	"one that wants a certificate of ours, later": {
		spec: func(t testing.TB) check.Spec {
			address := acceptTLS(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}, hang)
			return atHTTPS(address, check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: TLS handshake failed, remote error: certificate required"),
	},
	"TLS of the last century": {
		spec: func(t testing.TB) check.Spec {
			address := acceptTLS(t, &tls.Config{MaxVersion: tls.VersionTLS10}, hang)
			return atHTTPS(address, check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: TLS handshake failed, remote error: protocol version not supported"),
	},
	"a greeting after TLS": {
		spec: func(t testing.TB) check.Spec {
			return atHTTPS(acceptTLS(t, &tls.Config{}, greet("* OK IMAP4rev1\r\n")), check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"one that closes after TLS": {
		spec: func(t testing.TB) check.Spec {
			address := acceptTLS(t, &tls.Config{}, func(conn net.Conn) { _ = conn.(*tls.Conn).Handshake() })
			return atHTTPS(address, check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: connection closed without a response"),
	},
	"HTTP where HTTPS is asked for": {
		spec: func(t testing.TB) check.Spec {
			return atHTTPS(web(t, ok).Listener.Addr().String(), check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: the response is not TLS"),
	},
	"a greeting where HTTPS is asked for": {
		spec: func(t testing.TB) check.Spec {
			return atHTTPS(accept(t, greet("SSH-2.0-OpenSSH_9.9\r\n")), check.TLS{InsecureSkipVerify: true})
		},
		want: noAnswer("THERE: the response is not TLS"),
	},
	"HTTPS where HTTP is asked for": {
		spec: func(t testing.TB) check.Spec {
			certificate := newAuthority(t).issue(t, "127.0.0.1", time.Now().Add(time.Hour))
			return at(secure(t, certificate, ok).Listener.Addr().String())
		},
		want: isNotReady("THERE returned 400"),
	},
	"TLS where HTTP is asked for": {
		spec: raw(say("\x15\x03\x01\x00\x02\x02\x46")),
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"an unknown name": {
		spec: func(testing.TB) check.Spec { return at("unknown.invalid:80") },
		want: noAnswer("THERE: the name unknown.invalid is unknown"),
	},
	"a name server that fails": {
		spec: func(testing.TB) check.Spec { return at("broken.invalid:80") },
		want: noAnswer("THERE: the name broken.invalid cannot be looked up"),
	},
	"a name server that does not answer": {
		spec:  func(testing.TB) check.Spec { return at("silent.invalid:80") },
		want:  noAnswer("THERE: no response within 300ms"),
		hangs: true,
	},
	"a banner of SSH, before it is asked": {
		spec: raw(greet("SSH-2.0-OpenSSH_9.9\r\n")),
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"a banner of SSH, when it is asked": {
		spec: raw(say("SSH-2.0-OpenSSH_9.9\r\n")),
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"random bytes": {
		spec: raw(func(conn net.Conn) {
			question(conn)
			_, _ = io.CopyN(conn, rand.Reader, 1<<20)
		}),
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"headers that are none": {
		spec: raw(say("HTTP/1.1 200 OK\r\n\x00\x01\x02\r\n\r\n")),
		want: noAnswer("THERE: the response is not HTTP"),
	},
	"one that closes when it is asked": {
		spec: raw(question),
		want: noAnswer("THERE: connection closed without a response"),
	},
	"one that closes before it is asked": {
		spec: raw(func(net.Conn) {}),
		want: noAnswer("THERE: connection closed without a response"),
	},
	"one that closes in the middle of the headers": {
		spec: raw(say("HTTP/1.1 200 OK\r\nX-Y: z\r\n")),
		want: noAnswer("THERE: connection closed without a response"),
	},
	"one that resets": {
		spec: raw(reset),
		want: noAnswer("THERE: connection closed without a response"),
	},
	"one that is refused": {
		spec: func(t testing.TB) check.Spec { return at(refused(t)) },
		want: noAnswer("THERE: connection refused"),
	},
	"a caFile that is missing": {
		spec: func(testing.TB) check.Spec {
			return atHTTPS("127.0.0.1:1", check.TLS{CAFile: "/nowhere/ca.crt"})
		},
		want: noAnswer("caFile /nowhere/ca.crt cannot be read: no such file or directory"),
	},
	"a caFile that is none": {
		spec: func(testing.TB) check.Spec { return atHTTPS("127.0.0.1:1", check.TLS{CAFile: "/dev/null"}) },
		want: noAnswer("caFile /dev/null contains no certificate"),
	},
}

// The messages of conditions are an interface: each change causes one write per node.
func TestMessagesOfBadEndpointsAreStable(t *testing.T) {
	t.Parallel()
	for name, endpoint := range badEndpoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := endpoint.spec(t)
			timeout, runs := long, 12
			if endpoint.hangs {
				timeout, runs = brief, 3
			}
			want := endpoint.want
			want.Message = strings.Replace(want.Message, "THERE", spec.HTTP.URL, 1)
			c := made(t, spec, check.Env{Timeout: timeout})
			var running sync.WaitGroup
			for range runs {
				running.Go(func() { expect(t, ran(t, c, timeout), want) })
			}
			running.Wait()
			if len(want.Message) >= 200 {
				t.Errorf("%d characters are too many for a condition: %s", len(want.Message), want.Message)
			}
		})
	}
}

// It is a race which of these errors an endpoint causes, so the test uses the errors directly.
func TestMessagesOfRacingErrorsAreStable(t *testing.T) {
	t.Parallel()
	const closed = "connection closed without a response"
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"reading from one that reset":         {syscall.ECONNRESET, closed},
		"writing to one that closed":          {syscall.EPIPE, closed},
		"reading from one that closed":        {io.EOF, closed},
		"one that closed amid the answer":     {io.ErrUnexpectedEOF, closed},
		"one that closed before the question": {errors.New("http: server closed idle connection"), closed},
		"the same with HTTP/2":                {errors.New("http2: client conn could not be established"), closed},
		"one that is shutting down":           {errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=\"\""), closed},
		"an answer before the question":       {errors.New("readLoopPeekFailLocked: %!w(<nil>)"), "the response is not HTTP"},
		"a route that is gone":                {syscall.EHOSTUNREACH, "no route to the host"},
		"a network that is gone":              {syscall.ENETUNREACH, "no route to the network"},
		"no address of that kind":             {syscall.EADDRNOTAVAIL, "the address is not available"},
		"a socket that is not ours":           {os.ErrPermission, "permission denied"},
		"anything else":                       {errors.New("127.0.0.1:4711 is odd"), "no valid response"},
	} {
		wrapped := &url.Error{Op: "Get", URL: "http://there", Err: fmt.Errorf("wrapped: %w", test.err)}
		if got := neterror.Explain(wrapped, time.Second); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestAHugeBodyIsNotRead(t *testing.T) {
	t.Parallel()
	for name, beginning := range map[string]string{
		"of 10 GB":           "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n",
		"without a length":   "HTTP/1.1 200 OK\r\n\r\n",
		"that is compressed": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			address := accept(t, forever(beginning, "x", 0, &sent))
			expect(t, observed(t, at(address), long), answers("http://"+address+" returned 200"))
			// What the buffers of the system hold is sent without being read.
			if sent.Load() > 64<<20 {
				t.Errorf("%d bytes were sent", sent.Load())
			}
		})
	}
}

func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]func(port string, other *strings.Builder) string{
		"by name":   func(port string, _ *strings.Builder) string { return "http://localhost:" + port + "/elsewhere" },
		"by scheme": func(port string, _ *strings.Builder) string { return "https://127.0.0.1:" + port + "/elsewhere" },
		"by port":   func(_ string, other *strings.Builder) string { return other.String() + "/elsewhere" },
		"without a scheme": func(_ string, other *strings.Builder) string {
			return strings.TrimPrefix(other.String(), "http:") + "/elsewhere"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			other := web(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
			var there strings.Builder
			there.WriteString(other.URL)
			server := web(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					asked.Add(1)
				}
				_, port, _ := net.SplitHostPort(r.Host)
				http.Redirect(w, r, elsewhere(port, &there), http.StatusFound)
			})
			expect(t, observed(t, check.Spec{HTTP: &check.HTTP{URL: server.URL}}, long), isNotReady(server.URL+" redirects to another host"))
			if asked.Load() != 0 {
				t.Error("the other host was asked")
			}
		})
	}
}
