package check_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// accept handles each connection with a function, and closes it afterwards. It returns the
// address of the listener.
func accept(t testing.TB, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	acceptOn(t, listener, answer)
	return listener.Addr().String()
}

func acceptOn(t testing.TB, listener net.Listener, answer func(net.Conn)) {
	var (
		mu      sync.Mutex
		conns   = map[net.Conn]bool{}
		running sync.WaitGroup
	)
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			running.Go(func() {
				answer(conn)
				_ = conn.Close()
				mu.Lock()
				delete(conns, conn)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// acceptTLS is the same for connections that are encrypted.
func acceptTLS(t testing.TB, config *tls.Config, answer func(net.Conn)) string {
	t.Helper()
	config.Certificates = []tls.Certificate{newAuthority(t).issue(t, "127.0.0.1", time.Now().Add(time.Hour))}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	acceptOn(t, listener, answer)
	return listener.Addr().String()
}

// hang reads, and writes nothing.
func hang(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// question reads a request.
func question(conn net.Conn) { _, _ = conn.Read(make([]byte, 4<<10)) }

// say responds to a request with a text.
func say(text string) func(net.Conn) {
	return func(conn net.Conn) {
		question(conn)
		_, _ = io.WriteString(conn, text)
	}
}

// greet writes before the request, and then reads.
func greet(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		hang(conn)
	}
}

// reset resets the connection.
func reset(conn net.Conn) {
	question(conn)
	_ = conn.(*net.TCPConn).SetLinger(0)
}

// forever writes a text, and then the same text repeatedly, as long as the
// client reads; sent counts the bytes.
func forever(beginning, again string, pause time.Duration, sent *atomic.Int64) func(net.Conn) {
	if pause == 0 {
		again = string(bytes.Repeat([]byte(again), 1+(32<<10)/len(again)))
	}
	return func(conn net.Conn) {
		question(conn)
		for text := beginning; ; text = again {
			n, err := io.WriteString(conn, text)
			if err != nil {
				return
			}
			sent.Add(int64(n))
			time.Sleep(pause)
		}
	}
}

// refused returns an address that refuses connections.
func refused(t testing.TB) string {
	t.Helper()
	// The port stays taken, by a socket that does not listen.
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	return bound(t, socket)
}

// bound binds the socket to an address on this machine.
func bound(t testing.TB, socket int) string {
	t.Helper()
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// blackhole returns an address that drops packets: a listener whose backlog is full.
func blackhole(t testing.TB) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	address := bound(t, socket)
	if err := syscall.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("this system accepts connections beyond the backlog")
	return ""
}

// web serves HTTP, on this machine.
func web(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// secure serves HTTPS with a certificate.
func secure(t testing.TB, certificate tls.Certificate, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = quiet
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// ok returns 200.
func ok(http.ResponseWriter, *http.Request) {}

// socket is a listener on a path.
func socket(t testing.TB) (net.Listener, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, path
}
