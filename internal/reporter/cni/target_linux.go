package cni

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// tryEvery is how often the question is asked again: the first one may get lost while the
// address is being resolved.
const tryEvery = 200 * time.Millisecond

// target must respond: to an ICMP echo or, if it has a port, to a TCP connection.
type target struct {
	name  string
	addrs []netip.Addr // any of them
	port  uint16
}

// parseTarget understands Canary.Target. A name is looked up here, outside of the namespace.
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
		return target{}, failure(BadTarget, "the host of target %q cannot be looked up from this node", text)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return target{name: text, addrs: addrs, port: uint16(port)}, nil
}

// gateways are those of the addresses; where these name none, those of the default routes.
func gateways(result *types100.Result) []target {
	var ips []net.IP
	for _, ip := range result.IPs {
		ips = append(ips, ip.Gateway)
	}
	targets := asTargets(ips)
	if len(targets) > 0 {
		return targets
	}
	ips = nil
	for _, route := range result.Routes {
		if ones, _ := route.Dst.Mask.Size(); ones == 0 {
			ips = append(ips, route.GW)
		}
	}
	return asTargets(ips)
}

func asTargets(ips []net.IP) []target {
	var targets []target
	seen := map[netip.Addr]bool{}
	for _, ip := range ips {
		addr, ok := netip.AddrFromSlice(ip)
		if addr = addr.Unmap(); !ok || addr.IsUnspecified() || seen[addr] {
			continue
		}
		seen[addr] = true
		targets = append(targets, target{name: "gateway " + addr.String(), addrs: []netip.Addr{addr}})
	}
	return targets
}

// await asks until there is an answer. It must be called inside the namespace; index is that of
// the interface, for addresses that mean nothing without.
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
		return fmt.Errorf("waiting for an answer: %w", ctx.Err())
	}
	return failure(NoAnswer, "the canary has an address, but %s does not answer it", t.name)
}

// ask asks once, and takes tryEvery if there is no answer.
func (t target) ask(ctx context.Context, addr netip.Addr) (bool, error) {
	pause := time.NewTimer(tryEvery)
	defer pause.Stop()
	answered, err := t.askNow(ctx, addr)
	if answered || err != nil {
		return answered, err
	}
	select {
	case <-ctx.Done():
	case <-pause.C:
	}
	return false, nil
}

func (t target) askNow(ctx context.Context, addr netip.Addr) (bool, error) {
	if t.port == 0 {
		return ping(ctx, addr)
	}
	return connects(ctx, netip.AddrPortFrom(addr, t.port)), nil
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
