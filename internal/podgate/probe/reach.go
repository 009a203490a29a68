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

// reachLimit is how long a connection to a pod may take. A packet that is lost is sent again after a
// second: the question is asked again as well.
const reachLimit = time.Second

// reach opens a TCP connection to an address and closes it at once. Whoever accepts it was reached,
// and who resets it was as well: nobody listens at the port, but packets go there and back.
//
// An application that listens at the port sees a connection that ends without a word, as it does from
// a TCP probe of the kubelet. A firewall that rejects with a reset, or says that the port is
// unreachable, cannot be told from a pod: both look like a yes.
func reach(ctx context.Context, dial DialFunc, address string) podrule.Answer {
	// Without a host a dialer tries this machine, which would answer.
	if where, err := netip.ParseAddrPort(address); err != nil || where.Addr().Unmap().IsUnspecified() || where.Port() == 0 {
		return no("the pod has no address that can be tried")
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	conn, err := dial(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = conn.Close() // that it was there is all
		return yes
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET): // the second if it is accepted and reset before we look
		return yes
	}
	return no(words(ctx, err, reachLimit))
}
