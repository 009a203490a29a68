package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Peers connects to the reporters of other nodes over the pod network. A response proves that packets
// pass from a pod on this node to a pod on another node and back. It is for a reporter DaemonSet that
// runs on the pod network of every node.
//
// Peers that are not ready do not make a node unhealthy: one response is enough, and only ready peers
// that do not respond count against the node. A node that was switched off stays in the Service for
// about a minute and does not respond. With a shorter hold-down, a node for which it was the last peer
// becomes unhealthy.
type Peers struct {
	// ready is a Service of the ready reporters (according to /readyz), e.g. network-reporter, or host:port.
	// The check finds the Service by the environment variables that the kubelet sets in each container, so it
	// needs no DNS. The Service must be in the namespace of the pod and must exist before the pod.
	Ready string `json:"ready"`
	// everyone is a Service of all reporters, ready or not (publishNotReadyAddresses: true),
	// e.g. network-reporter-all, or host:port. A response there proves the same; a missing one proves nothing.
	Everyone string `json:"everyone"`
	// patience is how long a starting node waits for a first response before it counts as the only
	// node, and healthy; ten times as long while peers exist that do not respond. Absent: 30s.
	Patience *Duration `json:"patience,omitempty"`
}

const (
	// PeerPath is the path that a reporter serves for its peers.
	PeerPath = "/peer"
	// PeerNodeHeader is the response header with the name of the node.
	PeerNodeHeader = "Readygate-Node"

	defaultPatience = 30 * time.Second
	// extendedFactor multiplies the wait while peers exist that do not respond: either this node or the
	// peers may be the cause.
	extendedFactor = 10
	// maxPeerTries is the maximum number of connections per run: a Service may select this node's own reporter.
	maxPeerTries = 8
)

type peersCheck struct {
	ready, everyone string
	patience        time.Duration
	env             Env
	now             func() time.Time

	began      time.Time // start of the wait for a first response
	unanswered time.Time // last time in that wait at which a peer existed and did not respond
	answered   bool      // a peer responded once, or the wait is over
	silent     time.Time // since when ready peers do not respond; zero: one responds, or none exists
	broken     bool      // ready peers did not respond for the hold-down: only a response makes the node healthy
}

func (p *Peers) check(env Env) (Check, error) {
	c := &peersCheck{patience: defaultPatience, env: env, now: time.Now}
	var err error
	if c.ready, err = peerAddress(env, "ready", p.Ready); err != nil {
		return nil, err
	}
	if c.everyone, err = peerAddress(env, "everyone", p.Everyone); err != nil {
		return nil, err
	}
	if c.everyone == c.ready {
		return nil, wrong("everyone", "is %q, which has the same address as ready: must be another Service, which selects all reporters (publishNotReadyAddresses: true), e.g. network-reporter-all", p.Everyone)
	}
	if err := p.Patience.AtLeast(0, "patience", "30s"); err != nil {
		return nil, err
	}
	if p.Patience != nil {
		c.patience = p.Patience.Duration
	}
	return c, nil
}

// peerAddress returns the address of a Service, or host:port unchanged.
func peerAddress(env Env, field, text string) (string, error) {
	switch {
	case text == "":
		return "", wrong(field, "is not set, must be a Service of the pod's namespace, e.g. network-reporter, or host:port")
	case strings.Contains(text, ":"):
		return text, addressFits(field, text)
	}
	name := strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
	host, port := env.Variable(name+"_SERVICE_HOST"), env.Variable(name+"_SERVICE_PORT")
	if host == "" || portInRange(port) != nil {
		return "", wrong(field, "is %q, and the variables %s_SERVICE_HOST and %s_SERVICE_PORT are not set: create the Service with a cluster IP, in the namespace of this pod and before the pod; or set host:port", text, name, name)
	}
	return net.JoinHostPort(host, port), nil
}

// tally counts the results of the connections to one address.
type tally struct {
	reached              bool // a reporter of another node responded
	self, absent, silent int
}

// Run tries until a reporter on another node responds.
func (c *peersCheck) Run(ctx context.Context) Observation {
	ready := c.try(ctx, c.ready)
	everyone := ready
	if !ready.reached {
		everyone = c.try(ctx, c.everyone)
	}
	now := c.now()
	switch {
	case everyone.reached:
		c.answered, c.broken, c.silent = true, false, time.Time{}
		return healthy(ReasonPeerReached, "a reporter on another node responded over the pod network")
	case !c.answered:
		return c.wait(everyone.silent > 0, now)
	case ready.silent > 0:
		if c.silent.IsZero() {
			c.silent = now
		} else if now.Sub(c.silent) >= c.env.HoldDown {
			c.broken = true // the condition becomes False after the same time
		}
		return failed(ReasonPeersUnreachable, fmt.Sprintf("no reporter of another node responds at %s, although some are ready", c.ready))
	case c.broken:
		return failed(ReasonPeersUnreachable, "no reporter of another node has responded since the network failed")
	}
	c.silent = time.Time{}
	return healthy(ReasonNoPeers, "no other node has a ready reporter, so there is no peer to reach")
}

// wait returns the result before the first response: when many nodes start together, each of them
// finds no peer at first.
func (c *peersCheck) wait(others bool, now time.Time) Observation {
	if c.began.IsZero() {
		c.began = now
	}
	if others {
		c.unanswered = now
	}
	patience := c.patience
	// A run that reaches only this node proves little: with two nodes, the Service may select this one every time.
	if !c.unanswered.IsZero() && now.Sub(c.unanswered) < c.patience {
		patience *= extendedFactor
	}
	if now.Sub(c.began) < patience {
		return unhealthy(ReasonNoPeers, fmt.Sprintf("waiting up to %v for a response from a reporter of another node", patience))
	}
	c.answered = true
	return healthy(ReasonNoPeers, fmt.Sprintf("no reporter of another node responded within %v, so this node counts as the only one", patience))
}

// try connects to one address until a reporter on another node responds, for at most half of the timeout.
func (c *peersCheck) try(ctx context.Context, address string) tally {
	ctx, cancel := context.WithTimeout(ctx, c.env.Timeout/2)
	defer cancel()
	var found tally
	for range maxPeerTries {
		node, err := c.ask(ctx, address)
		switch {
		case err == nil && node != c.env.Node:
			found.reached = true
			return found
		case err == nil:
			found.self++
		case isNoEndpoint(err):
			found.absent++
		default:
			found.silent++
		}
		if ctx.Err() != nil || found.absent > 0 && found.self+found.silent == 0 {
			break // no endpoint: an immediate retry does not help
		}
	}
	return found
}

// ask connects to one of the reporters at the address and returns its node.
func (c *peersCheck) ask(ctx context.Context, at string) (string, error) {
	tryCtx, cancel := context.WithTimeout(ctx, c.env.Timeout/5)
	defer cancel()
	address, err := pick(tryCtx, at)
	if err != nil {
		return "", err
	}
	peer := url.URL{Scheme: "http", Host: address, Path: PeerPath}
	request, err := http.NewRequestWithContext(tryCtx, http.MethodGet, peer.String(), nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", userAgent())
	dial, closeAll := newDialer(tryCtx, 1, "")
	defer closeAll()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}, CheckRedirect: noRedirect}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	node := response.Header.Get(PeerNodeHeader)
	if response.StatusCode != http.StatusOK || node == "" {
		return "", errors.New("the response is not from a reporter")
	}
	return node, nil
}

// pick resolves a name and returns one address at random: a dialer would use the same first
// address each time.
func pick(ctx context.Context, at string) (string, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return "", err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addresses[rand.IntN(len(addresses))], port), nil
}

// isNoEndpoint reports whether a Service, or a name, has no endpoint. Socket load balancers
// (Calico's, and Cilium's in some versions) return EPERM then.
func isNoEndpoint(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPERM) || errors.As(err, &name) && name.IsNotFound
}
