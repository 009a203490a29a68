package check_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

func TestNothingIsReadBeforeTheRequest(t *testing.T) {
	t.Parallel()
	for name, question := range map[string]int32{"that is the first write": 1, "that is the second write": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dial, closeAll := check.NewDialer(t.Context(), question, "")
			defer closeAll()
			conn, err := dial(t.Context(), "tcp", accept(t, greet("hello")))
			if err != nil {
				t.Fatal(err)
			}
			heard := make(chan string, 1)
			go func() {
				text := make([]byte, 5)
				_, _ = io.ReadFull(conn, text)
				heard <- string(text)
			}()
			for range question {
				select {
				case text := <-heard:
					t.Fatalf("%q was read too early", text)
				case <-time.After(50 * time.Millisecond): // only a read that is wrong makes it shorter
				}
				if _, err := conn.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			if text := <-heard; text != "hello" {
				t.Errorf("%q was read", text)
			}
		})
	}
}

func TestTheResponseOfAClosedConnectionIsRead(t *testing.T) {
	t.Parallel()
	address := accept(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "bye") })
	dial, closeAll := check.NewDialer(t.Context(), 1, "")
	defer closeAll()
	conn, err := dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close() //nolint:errcheck // a test
	eventually(t, "a plain connection cannot be written to", func() bool {
		_, err := plain.Write([]byte("x"))
		return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
	})
	for range 20 {
		if n, err := conn.Write([]byte("x")); n != 1 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		time.Sleep(time.Millisecond) // for the answer of the system of the peer
	}
	text := make([]byte, 3)
	if _, err := io.ReadFull(conn, text); err != nil || string(text) != "bye" {
		t.Errorf("heard %q, %v", text, err)
	}
}

func TestClosingEndsOpenAndOpeningConnections(t *testing.T) {
	t.Parallel()
	dial, closeAll := check.NewDialer(t.Context(), 1, "")
	conn, err := dial(t.Context(), "tcp", accept(t, hang))
	if err != nil {
		t.Fatal(err)
	}
	dialed := make(chan error, 1)
	nowhere := blackhole(t)
	go func() {
		_, err := dial(t.Context(), "tcp", nowhere)
		dialed <- err
	}()
	closeAll()
	if err := <-dialed; err == nil {
		t.Error("a connection was opened after all")
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open, or ended by the peer: %v", err)
	}
}
