package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
)

// reachLimit is the timeout of a connection to a pod. TCP retransmits a lost packet only after one
// second, when the next probe starts anyway.
const reachLimit = time.Second

// reach opens a TCP connection to an address and closes it immediately. An accepted connection is a yes,
// and so is a reset: no process listens on the port, but packets pass in both directions.
//
// An application that listens on the port sees a connection that closes without data, like for
// a TCP probe of the kubelet. Reach cannot distinguish a pod from a firewall that rejects with a reset or
// port unreachable: both return yes.
func reach(ctx context.Context, dial DialFunc, address string) podrule.Answer {
	// Without a host, a dialer connects to this machine, which would respond.
	if where, err := netip.ParseAddrPort(address); err != nil || where.Addr().Unmap().IsUnspecified() || where.Port() == 0 {
		return no("the pod has no usable address")
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = conn.Close()
		return yes
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET): // ECONNRESET: accepted, then reset immediately
		return yes
	}
	return no(explain(ctx, err, reachLimit))
}
