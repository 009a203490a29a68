package check

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// dialFunc opens the connections of an http.Transport.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newDialer returns a dialer for one run and a function that closes all its connections, also those that are being
// opened: an http.Transport keeps connections that were established after their request was
// cancelled, and HTTP/2 transports keep more. requestWrite is the number of the write that sends the request.
// socket is the path of a Unix socket to connect to; empty: the dialled address.
func newDialer(ctx context.Context, requestWrite int32, socket string) (dial dialFunc, closeAll func()) {
	run, closeAll := context.WithCancel(context.WithoutCancel(ctx))
	return func(_ context.Context, network, address string) (net.Conn, error) {
		if socket != "" {
			network, address = "unix", socket
		}
		conn, err := (&net.Dialer{}).DialContext(run, network, address)
		if err != nil {
			return nil, err
		}
		tracked := &requestFirstConn{Conn: conn, requestWrite: requestWrite, requested: make(chan struct{})}
		context.AfterFunc(run, func() { _ = tracked.Close() })
		return tracked, nil
	}, closeAll
}

// requestFirstConn is a connection that blocks reads until the request is written.
// Otherwise it is a race whether the client uses unsolicited bytes as the response or logs them.
type requestFirstConn struct {
	net.Conn

	requestWrite int32
	writes       atomic.Int32
	once         sync.Once
	requested    chan struct{}
}

func (c *requestFirstConn) Read(p []byte) (int, error) {
	<-c.requested
	return c.Conn.Read(p)
}

// Write ignores that the peer closed the connection: an earlier response counts, and Read returns the error.
func (c *requestFirstConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.writes.Add(1) >= c.requestWrite {
		c.once.Do(func() { close(c.requested) })
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(p), nil
	}
	return n, err
}

func (c *requestFirstConn) Close() error {
	c.once.Do(func() { close(c.requested) })
	return c.Conn.Close()
}
