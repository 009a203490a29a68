package dashboard_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

func TestListeningIsOnLoopbackOnly(t *testing.T) {
	listener, err := dashboard.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // only listened
	address := listener.Addr().(*net.TCPAddr)
	if !address.IP.IsLoopback() || address.Port == 0 {
		t.Errorf("listens on %v", address)
	}
	if _, err := dashboard.Listen(address.Port); err == nil || !strings.Contains(err.Error(), "use another port, or 0") {
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestServingEndsWithItsContextAndEndsAllStreams(t *testing.T) {
	listener, err := dashboard.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	s := dashboard.New(dashboard.Options{Fleet: fleet(held("a"))})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	p := openPage(t, "http://"+listener.Addr().String())
	p.next()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for ended := false; !ended; ended = !p.lines.Scan() {
		continue
	}
	if s.Streams() != 0 {
		t.Errorf("%d streams are left", s.Streams())
	}
}

func TestServingOnAClosedListenerFails(t *testing.T) {
	listener, err := dashboard.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := dashboard.New(dashboard.Options{Fleet: fleet()}).Serve(t.Context(), listener); err == nil {
		t.Error("no error")
	}
}
