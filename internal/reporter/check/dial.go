package check

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// dialFunc is what an http.Transport opens connections with.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newDialer opens the connections of one run; closeAll closes all of them, also those that are being
// opened. A transport of net/http keeps connections that were established after their request was
// cancelled, and with HTTP/2 others too. The number of the write that sends the request is passed in, and
// the path of a socket to connect to; empty: connections go to the address that is dialled.
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

// requestFirstConn is a connection from which nothing is read before the request was written.
// Otherwise it is a race whether the client takes unsolicited bytes as the response, or logs them.
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

// Write ignores a connection that the peer has closed: its earlier response counts, and Read returns the error.
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
