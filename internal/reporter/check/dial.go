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

// lines opens the connections of one run; hangUp closes all of them, also those that are just
// being opened. A transport on its own keeps those that it finished when nobody waited for
// them any more, and with HTTP/2 more than that. The question is in this write, the first or a
// later one.
func lines(ctx context.Context, question int32) (dial dialFunc, hangUp func()) {
	run, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	return func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(run, network, address)
		if err != nil {
			return nil, err
		}
		line := &askFirst{Conn: conn, question: question, asked: make(chan struct{})}
		context.AfterFunc(run, func() { _ = line.Close() })
		return line, nil
	}, hangUp
}

// askFirst is a connection that nothing is read from before the question was written to it.
// Whether the client sees what a peer says unasked as an answer, or logs it as a stray one, is
// chance otherwise.
type askFirst struct {
	net.Conn

	question int32
	writes   atomic.Int32
	once     sync.Once
	asked    chan struct{}
}

func (c *askFirst) Read(p []byte) (int, error) {
	<-c.asked
	return c.Conn.Read(p)
}

// Write takes no notice of a peer that has hung up: what it said before counts, and Read tells.
func (c *askFirst) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.writes.Add(1) >= c.question {
		c.once.Do(func() { close(c.asked) })
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(p), nil
	}
	return n, err
}

func (c *askFirst) Close() error {
	c.once.Do(func() { close(c.asked) })
	return c.Conn.Close()
}
