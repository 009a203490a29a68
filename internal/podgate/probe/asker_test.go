package probe_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
)

// long is a time that no test waits for.
const long = 20 * time.Second

var yes = podrule.Answer{Yes: true}

func no(why string) podrule.Answer { return podrule.Answer{Why: why} }

func expect(t testing.TB, got, want podrule.Answer) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// asked runs a probe without a deadline of the caller.
func asked(t testing.TB, a *probe.Asker, p podrule.Probe) podrule.Answer {
	t.Helper()
	answer := make(chan podrule.Answer, 1)
	go func() { answer <- a.Ask(t.Context(), p) }()
	select {
	case is := <-answer:
		return is
	case <-time.After(long):
		t.Fatalf("%+v is not answered", p)
		return podrule.Answer{}
	}
}

// web serves on this machine.
func web(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

// listen listens on this machine.
func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// refused returns an address that refuses connections. A socket that does not listen reserves the port.
func refused(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*syscall.SockaddrInet4).Port}).String()
}

// dialling dials with this outcome, and counts how often.
func dialling(times *atomic.Int32, err error) probe.DialFunc {
	return func(_ context.Context, network, _ string) (net.Conn, error) {
		times.Add(1)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		here, there := net.Pipe()
		return here, there.Close()
	}
}

// dropped dials where packets are dropped.
func dropped(ctx context.Context, network, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
}

// A rule of a newer version may have kinds of components that this version does not support.
func TestUnknownKindOfProbeFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []podrule.Kind{"", "telepathy", podrule.PodCondition} {
		expect(t, asked(t, &probe.Asker{}, podrule.Probe{Kind: kind}), no("this version of podgate does not support the component"))
	}
}

func TestCancelledCallerStartsNoProbe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var times atomic.Int32
	server := web(t, func(http.ResponseWriter, *http.Request) { times.Add(1) })
	asker := &probe.Asker{Dial: dialling(&times, nil)}
	probe.SetCheckFile(asker, func(string, podrule.Probe) podrule.Answer { times.Add(1); return yes })
	for _, p := range []podrule.Probe{
		{Kind: podrule.File, Path: "/etc/hosts"},
		{Kind: podrule.HTTP, URL: server.URL},
		{Kind: podrule.Reach, Address: "10.0.0.7:9"},
	} {
		expect(t, asker.Ask(ctx, p), no("the probe was cancelled"))
	}
	if times.Load() != 0 {
		t.Errorf("asked %d times", times.Load())
	}
}

// A cancelled caller does not wait for the end of a probe.
func TestCancellationEndsARunningProbe(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	server := web(t, func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	asker := &probe.Asker{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		began <- struct{}{}
		return dropped(ctx, network, address)
	}}
	probe.SetCheckFile(asker, func(string, podrule.Probe) podrule.Answer {
		began <- struct{}{}
		<-end
		return yes
	})
	for _, p := range []podrule.Probe{
		{Kind: podrule.File, Path: "/etc/hosts"},
		{Kind: podrule.HTTP, URL: server.URL},
		{Kind: podrule.Reach, Address: "10.0.0.7:9"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-began
			cancel(errors.New("cancelled by the test"))
		}()
		expect(t, asker.Ask(ctx, p), no("the probe was cancelled"))
	}
}
