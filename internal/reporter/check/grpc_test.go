package check_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/readygate/readygate/internal/reporter/check"
)

// component is a real gRPC server: the whole of it serves, and so does "good", but not "bad".
func component(t testing.TB, listener net.Listener, options ...grpc.ServerOption) {
	t.Helper()
	server := grpc.NewServer(options...)
	states := health.NewServer()
	states.SetServingStatus("good", healthpb.HealthCheckResponse_SERVING)
	states.SetServingStatus("bad", healthpb.HealthCheckResponse_NOT_SERVING)
	states.SetServingStatus("odd", healthpb.HealthCheckResponse_UNKNOWN)
	healthpb.RegisterHealthServer(server, states)
	run(t, server, listener)
}

func run(t testing.TB, server *grpc.Server, listener net.Listener) {
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func local(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestARealGRPCServer(t *testing.T) {
	t.Parallel()
	plain := local(t)
	component(t, plain)
	address := plain.Addr().String()

	stranger := local(t)
	run(t, grpc.NewServer(), stranger)

	path, name := socket(t)
	component(t, path)

	ca := newAuthority(t)
	encrypted := local(t)
	certificate := ca.issue(t, "agent.example", time.Now().Add(time.Hour))
	component(t, encrypted, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)))
	safe := encrypted.Addr().String()

	for name, test := range map[string]struct {
		spec check.GRPC
		want check.Observation
	}{
		"that serves":              {check.GRPC{Address: address}, answers("THERE is SERVING")},
		"with a service that does": {check.GRPC{Address: address, Service: "good"}, answers("THERE service good is SERVING")},
		"with one that does not":   {check.GRPC{Address: address, Service: "bad"}, isNotReady("THERE service bad is NOT_SERVING")},
		"with one in limbo":        {check.GRPC{Address: address, Service: "odd"}, isNotReady("THERE service odd is UNKNOWN")},
		"without the service":      {check.GRPC{Address: address, Service: "other"}, isNotReady("THERE service other: service not found")},
		"without health":           {check.GRPC{Address: stranger.Addr().String()}, isNotReady("THERE does not implement the gRPC health protocol")},
		"at a socket":              {check.GRPC{Address: "unix://" + name}, answers("THERE is SERVING")},
		"that is believed":         {check.GRPC{Address: safe, TLS: &check.TLS{CAFile: ca.file(t), ServerName: "agent.example"}}, answers("THERE is SERVING")},
		"that need not be":         {check.GRPC{Address: safe, TLS: &check.TLS{InsecureSkipVerify: true}}, answers("THERE is SERVING")},
		"that is not believed": {
			check.GRPC{Address: safe, TLS: &check.TLS{CAFile: newAuthority(t).file(t), ServerName: "agent.example"}},
			noAnswer("THERE: the certificate is signed by an unknown authority: set caFile, or insecureSkipVerify"),
		},
		"of another name": {
			check.GRPC{Address: safe, TLS: &check.TLS{CAFile: ca.file(t)}},
			noAnswer("THERE: the certificate is for another name: set serverName"),
		},
		"that is encrypted, and was not said to be": {check.GRPC{Address: safe}, noAnswer("THERE: connection closed without a response")},
		"that is not, and was said to be":           {check.GRPC{Address: address, TLS: &check.TLS{InsecureSkipVerify: true}}, noAnswer("THERE: the response is not TLS")},
		"whose caFile is missing":                   {check.GRPC{Address: safe, TLS: &check.TLS{CAFile: "/nowhere/ca.crt"}}, noAnswer("caFile /nowhere/ca.crt cannot be read: no such file or directory")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tellsTheSame(t, test.spec, test.want, long, 5)
		})
	}
}

// tellsTheSame runs the check this often, concurrently.
func tellsTheSame(t *testing.T, spec check.GRPC, want check.Observation, timeout time.Duration, runs int) {
	t.Helper()
	want.Message = strings.Replace(want.Message, "THERE", spec.Address, 1)
	c := made(t, check.Spec{GRPC: &spec}, check.Env{Timeout: timeout})
	var running sync.WaitGroup
	for range runs {
		running.Go(func() { expect(t, ran(t, c, timeout), want) })
	}
	running.Wait()
	if len(want.Message) >= 200 {
		t.Errorf("%d characters are too many for a condition: %s", len(want.Message), want.Message)
	}
}

// reply is an HTTP/2 server that returns these bytes and this gRPC status.
func reply(t testing.TB, status string, body []byte) string {
	return http2(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(body)
		w.Header().Set("Grpc-Status", status)
	})
}

func http2(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = quiet
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// message is a gRPC message.
func message(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

func TestBadGRPCServers(t *testing.T) {
	t.Parallel()
	const alien = "THERE: the response is not of the gRPC health protocol"
	for name, test := range map[string]struct {
		address func(t testing.TB) string
		tls     *check.TLS
		want    check.Observation
		hangs   bool
	}{
		"one that hangs": {
			address: func(t testing.TB) string { return accept(t, hang) },
			want:    noAnswer("THERE: no response within 300ms"), hangs: true,
		},
		"one that hangs after the greeting": {
			address: func(t testing.TB) string { return accept(t, greet("\x00\x00\x00\x04\x00\x00\x00\x00\x00")) },
			want:    noAnswer("THERE: no response within 300ms"), hangs: true,
		},
		"one that hangs after the headers": {
			address: func(t testing.TB) string {
				return http2(t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusOK)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
			},
			want: noAnswer("THERE: no response within 300ms"), hangs: true,
		},
		"one that drops packets": {
			address: blackhole,
			want:    noAnswer("THERE: no response within 300ms"), hangs: true,
		},
		"HTTP/1": {
			address: func(t testing.TB) string { return web(t, ok).Listener.Addr().String() },
			want:    noAnswer("THERE: the response is not HTTP/2"),
		},
		"HTTP/1 over TLS": {
			address: func(t testing.TB) string {
				return acceptTLS(t, &tls.Config{NextProtos: []string{"http/1.1"}}, hang)
			},
			tls:  &check.TLS{InsecureSkipVerify: true},
			want: noAnswer("THERE: TLS handshake failed, remote error: no application protocol"),
		},
		"HTTP/2 that is not gRPC": {
			address: func(t testing.TB) string { return http2(t, ok) },
			want:    noAnswer("THERE: the response is not gRPC"),
		},
		"HTTP/2 that redirects": {
			address: func(t testing.TB) string {
				return http2(t, func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				})
			},
			want: noAnswer("THERE: the response is not gRPC"),
		},
		"a banner of SSH": {
			address: func(t testing.TB) string { return accept(t, greet("SSH-2.0-OpenSSH_9.9\r\n")) },
			want:    noAnswer("THERE: the response is not HTTP/2"),
		},
		"one that closes when it is asked": {
			address: func(t testing.TB) string { return accept(t, question) },
			want:    noAnswer("THERE: connection closed without a response"),
		},
		"one that closes before it is asked": {
			address: func(t testing.TB) string { return accept(t, func(net.Conn) {}) },
			want:    noAnswer("THERE: connection closed without a response"),
		},
		"one that resets": {
			address: func(t testing.TB) string { return accept(t, reset) },
			want:    noAnswer("THERE: connection closed without a response"),
		},
		"no listener": {
			address: refused,
			want:    noAnswer("THERE: connection refused"),
		},
		"a socket that is not there": {
			address: func(testing.TB) string { return "unix:///nowhere/agent.sock" },
			want:    noAnswer("THERE: no such file"),
		},
		"an unknown name": {
			address: func(testing.TB) string { return "unknown.invalid:80" },
			want:    noAnswer("THERE: the name unknown.invalid is unknown"),
		},
		"an address of a link that is not there": {
			address: func(testing.TB) string { return "[fe80::1%nolink0]:80" },
			want:    noAnswer("THERE: no valid response"),
		},
		"a message that is too short": {
			address: func(t testing.TB) string { return reply(t, "0", []byte{0, 0}) },
			want:    noAnswer(alien),
		},
		"no message at all": {
			address: func(t testing.TB) string { return reply(t, "0", nil) },
			want:    noAnswer(alien),
		},
		"a length that is a lie": {
			address: func(t testing.TB) string { return reply(t, "0", []byte{0, 255, 255, 255, 255, 8, 1}) },
			want:    noAnswer(alien),
		},
		"a message that is compressed": {
			address: func(t testing.TB) string { return reply(t, "0", []byte{1, 0, 0, 0, 2, 8, 1}) },
			want:    noAnswer(alien),
		},
		"another protocol": {
			address: func(t testing.TB) string { return reply(t, "0", message("\xff\xff\xff")) },
			want:    noAnswer(alien),
		},
		"a status that there is not": {
			address: func(t testing.TB) string { return reply(t, "0", message("\x08\x07")) },
			want:    noAnswer(alien),
		},
		"a service that is unknown, as those that watch are told": {
			address: func(t testing.TB) string { return reply(t, "0", message("\x08\x03")) },
			want:    isNotReady("THERE is SERVICE_UNKNOWN"),
		},
		"an error": {
			address: func(t testing.TB) string { return reply(t, "14", nil) },
			want:    isNotReady("THERE returned a gRPC error"),
		},
		"an error with a message that changes": {
			address: func(t testing.TB) string {
				var asked atomic.Int64
				return http2(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Grpc-Status", "14")
					w.Header().Set("Grpc-Message", time.Duration(asked.Add(1)).String())
				})
			},
			want: isNotReady("THERE returned a gRPC error"),
		},
		"an answer without end": {
			address: func(t testing.TB) string {
				return http2(t, func(w http.ResponseWriter, _ *http.Request) {
					for {
						if _, err := w.Write(make([]byte, 32<<10)); err != nil {
							return
						}
					}
				})
			},
			want: noAnswer("THERE: the response is not gRPC"),
		},
		"a header that is huge": {
			address: func(t testing.TB) string {
				return http2(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("X", strings.Repeat("y", 1<<20))
				})
			},
			want: noAnswer("THERE: the response is not HTTP/2"),
		},
		"too many headers": {
			address: func(t testing.TB) string {
				return http2(t, func(w http.ResponseWriter, _ *http.Request) {
					for i := range 700 {
						w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("y", 100))
					}
				})
			},
			want: noAnswer("THERE: the response is not HTTP/2"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout, runs := long, 12
			if test.hangs {
				timeout, runs = brief, 3
			}
			tellsTheSame(t, check.GRPC{Address: test.address(t), TLS: test.tls}, test.want, timeout, runs)
		})
	}
}

func FuzzServingOf(f *testing.F) {
	for status := range healthpb.HealthCheckResponse_ServingStatus_name {
		answer, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(status)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message(string(answer)))
	}
	f.Add(message("\x08\x01\x12\x03abc"))
	f.Add(message("\x0a\x01a\x08\x01"))
	f.Add(message("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add(message("\x80\x99\x99\x990000\x8000")) // a field of too high a number
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 255, 255, 255, 255, 8, 1})
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := check.ServingOf(answer)
		if err != nil {
			return
		}
		// Whatever is understood is understood as the real library does.
		var real healthpb.HealthCheckResponse
		if err := proto.Unmarshal(answer[5:], &real); err != nil {
			t.Fatalf("%x is %d, though it is not a message: %v", answer, got, err)
		}
		if uint64(real.GetStatus()) != got {
			t.Fatalf("%x is %d, want %d", answer, got, real.GetStatus())
		}
	})
}

func TestTheStatusIsReadAsTheRealLibraryWritesIt(t *testing.T) {
	t.Parallel()
	for status := range healthpb.HealthCheckResponse_ServingStatus_name {
		answer, err := proto.Marshal(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(status)})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := check.ServingOf(message(string(answer))); err != nil || got != uint64(status) {
			t.Errorf("%d is read as %d, %v", status, got, err)
		}
	}
}
