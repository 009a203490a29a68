package cni

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// tryEvery is the time between two probes of a target: the first packet may be lost while the
// address is resolved (ARP, neighbour discovery).
const tryEvery = 200 * time.Millisecond

// target must respond to an ICMP echo or, if it has a port, to a TCP connection.
type target struct {
	name  string
	addrs []netip.Addr // any of them
	port  uint16
}

// parseTarget parses Canary.Target. It resolves a host name here, outside of the namespace.
func parseTarget(ctx context.Context, text string) (target, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return target{name: text, addrs: []netip.Addr{addr.Unmap()}}, nil
	}
	host, service, _ := net.SplitHostPort(text)
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return target{}, failure(BadTarget, "target %q has no port", text)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return target{}, failure(BadTarget, "the host of target %q cannot be resolved on this node", text)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return target{name: text, addrs: addrs, port: uint16(port)}, nil
}

// gateways returns the gateways of the addresses; if there are none, those of the default routes.
func gateways(result *types100.Result) []target {
	var targets []target
	for _, ip := range result.IPs {
		targets = appendGateway(targets, ip.Gateway)
	}
	if len(targets) > 0 {
		return targets
	}
	for _, route := range result.Routes {
		if ones, _ := route.Dst.Mask.Size(); ones == 0 {
			targets = appendGateway(targets, route.GW)
		}
	}
	return targets
}

// appendGateway appends an address that is set and not a target yet.
func appendGateway(targets []target, ip net.IP) []target {
	addr, ok := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	if !ok || addr.IsUnspecified() || slices.ContainsFunc(targets, func(t target) bool { return t.addrs[0] == addr }) {
		return targets
	}
	return append(targets, target{name: "gateway " + addr.String(), addrs: []netip.Addr{addr}})
}

// await probes the target until it responds. It must be called inside the namespace; index is the
// interface index, which link-local addresses need.
func (t target) await(ctx context.Context, index int) error {
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for within.Err() == nil {
		for _, addr := range t.addrs {
			if addr.IsLinkLocalUnicast() && addr.Is6() && addr.Zone() == "" {
				addr = addr.WithZone(strconv.Itoa(index)) // names of interfaces are cached by the net package, across namespaces
			}
			answered, err := t.ask(within, addr)
			if answered || err != nil {
				return err
			}
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("waiting for a response: %w", ctx.Err())
	}
	return failure(NoAnswer, "the canary has an address, but %s does not respond to it", t.name)
}

// ask sends one probe, and takes tryEvery if there is no response.
func (t target) ask(ctx context.Context, addr netip.Addr) (answered bool, err error) {
	pause := time.NewTimer(tryEvery)
	defer pause.Stop()
	if t.port == 0 {
		answered, err = ping(ctx, addr)
	} else {
		answered = connects(ctx, netip.AddrPortFrom(addr, t.port))
	}
	if answered || err != nil {
		return answered, err
	}
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
	return false, nil
}

// connects reports whether the address responds; a refused connection is a response.
func connects(ctx context.Context, addr netip.AddrPort) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr.String())
	if err == nil {
		_ = conn.Close()
		return true
	}
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ECONNRESET)
}
