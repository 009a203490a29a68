package cni

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// family is ICMP for one kind of address.
type family struct {
	network, any string
	protocol     int
	ask, answer  icmp.Type
}

var (
	icmp4 = family{network: "ip4:icmp", any: "0.0.0.0", protocol: unix.IPPROTO_ICMP, ask: ipv4.ICMPTypeEcho, answer: ipv4.ICMPTypeEchoReply}
	icmp6 = family{network: "ip6:ipv6-icmp", any: "::", protocol: unix.IPPROTO_ICMPV6, ask: ipv6.ICMPTypeEchoRequest, answer: ipv6.ICMPTypeEchoReply}
)

// ping sends one echo request and reports whether the reply arrives within tryEvery. It returns no error if the
// request cannot be sent for lack of a route or a neighbour: either may be added later.
func ping(ctx context.Context, addr netip.Addr) (bool, error) {
	f := icmp6
	if addr.Is4() {
		f = icmp4
	}
	conn, err := net.ListenPacket(f.network, f.any)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return false, failure(NotPermitted, "sending an ICMP echo to %s needs CAP_NET_RAW", addr.WithZone(""))
		}
		return false, scratchFailed("opening a socket for ICMP", err)
	}
	defer func() { _ = conn.Close() }()
	deadline := time.Now().Add(tryEvery)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	_ = conn.SetDeadline(deadline)

	echo := &icmp.Echo{ID: rand.IntN(1 << 16), Seq: 1, Data: []byte("readygate")}
	request := icmp.Message{Type: f.ask, Body: echo}
	packet, err := request.Marshal(nil) // the kernel fills in the checksum of IPv6
	if err != nil {
		return false, scratchFailed("writing an ICMP echo", err)
	}
	if _, err := conn.WriteTo(packet, &net.IPAddr{IP: addr.AsSlice(), Zone: addr.Zone()}); err != nil {
		return false, nil
	}
	return f.awaitReply(conn, echo.ID), nil
}

// awaitReply reads until the reply or the deadline. The socket receives all ICMP packets of the namespace.
func (f family) awaitReply(conn net.PacketConn, id int) bool {
	buffer := make([]byte, 1500)
	for {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			return false
		}
		message, err := icmp.ParseMessage(f.protocol, buffer[:n])
		if err != nil || message.Type != f.answer {
			continue
		}
		if reply, ok := message.Body.(*icmp.Echo); ok && reply.ID == id {
			return true
		}
	}
}
