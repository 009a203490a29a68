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

// Peers connects to the reporters of other nodes over the network of pods: one that answers
// proves that packets go from a pod here to a pod there and back. It is for a reporter that
// runs on the network of pods, on every node.
//
// A node is not held back by peers that are not ready themselves: one answer is enough, and
// only the silence of peers that are ready speaks against a node. One that is switched off is
// silent as well until it leaves the Service, about a minute later: a hold-down that is shorter
// makes that a failure of those that it was the last peer of.
type Peers struct {
	// ready is a Service in front of the reporters that are ready (by /readyz), e.g.
	// network-reporter, or host:port. A Service is found by the variables that kubelet sets in
	// each container, so no DNS is needed: it must be in the pod's own namespace, and there
	// before the pod.
	Ready string `json:"ready"`
	// everyone is a Service in front of all reporters, ready or not (publishNotReadyAddresses),
	// e.g. network-reporter-all, or host:port. An answer there proves as much, silence nothing.
	Everyone string `json:"everyone"`
	// patience is how long a node that starts waits for a first answer before it counts as
	// alone, and healthy; ten times as long while there are peers that do not answer. Absent: 30s.
	Patience *Duration `json:"patience,omitempty"`
}

const (
	// PeerPath is where a reporter answers its peers.
	PeerPath = "/peer"
	// PeerNodeHeader names the node in such an answer.
	PeerNodeHeader = "Readygate-Node"

	defaultPatience = 30 * time.Second
	// extendedFactor is how many times as long a node waits while peers are there that do not
	// answer: it may be its own fault, and it may be theirs.
	extendedFactor = 10
	// maxPeerTries is how many connections a run tries: a Service may lead to this very node.
	maxPeerTries = 8
)

type peersCheck struct {
	ready, everyone string
	patience        time.Duration
	env             Env
	now             func() time.Time

	began      time.Time // of the wait for a first answer
	unanswered time.Time // when there was a peer that did not answer, in that wait
	answered   bool      // there was an answer once, or the wait for one is over
	silent     time.Time // since when peers that are ready do not answer; zero: they do, or there is none
	broken     bool      // they did not for as long as the hold-down, so only an answer makes up for it
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
		return nil, wrong("everyone", "is %q, which is where ready leads as well: must be another Service, in front of all reporters (publishNotReadyAddresses: true), e.g. network-reporter-all", p.Everyone)
	}
	if err := p.Patience.AtLeast(0, "patience", "30s"); err != nil {
		return nil, err
	}
	if p.Patience != nil {
		c.patience = p.Patience.Duration
	}
	return c, nil
}

// peerAddress is where the reporters behind a Service, or at host:port, are.
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
		return "", wrong(field, "is %q, and the variables %s_SERVICE_HOST and %s_SERVICE_PORT are not set: create the Service, with a cluster IP and in the namespace of this pod, before the pod; or give host:port", text, name, name)
	}
	return net.JoinHostPort(host, port), nil
}

// tally is what the tries at one address found.
type tally struct {
	reached              bool // a reporter of another node
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
		return healthy(ReasonPeerReached, "a reporter on another node answers over the network of pods")
	case !c.answered:
		return c.wait(everyone.silent > 0, now)
	case ready.silent > 0:
		if c.silent.IsZero() {
			c.silent = now
		} else if now.Sub(c.silent) >= c.env.HoldDown {
			c.broken = true // silence is proof when it has lasted as long as the condition needs to turn
		}
		return failed(ReasonPeersUnreachable, fmt.Sprintf("no reporter of another node answers at %s, though there are some that are ready", c.ready))
	case c.broken:
		return failed(ReasonPeersUnreachable, "no reporter of another node has answered since the network broke")
	}
	c.silent = time.Time{}
	return healthy(ReasonNoPeers, "no other node has a reporter that is ready, so there is no peer to reach")
}

// wait waits for a first answer for a while: when many nodes start together, each of them
// finds no peer at first.
func (c *peersCheck) wait(others bool, now time.Time) Observation {
	if c.began.IsZero() {
		c.began = now
	}
	if others {
		c.unanswered = now
	}
	patience := c.patience
	// A run that finds only itself proves little: with two nodes, chance hides the other at times.
	if !c.unanswered.IsZero() && now.Sub(c.unanswered) < c.patience {
		patience *= extendedFactor
	}
	if now.Sub(c.began) < patience {
		return unhealthy(ReasonNoPeers, fmt.Sprintf("waits up to %v for a reporter of another node to answer", patience))
	}
	c.answered = true
	return healthy(ReasonNoPeers, fmt.Sprintf("no reporter of another node has answered for %v, so this node counts as alone", patience))
}

// try connects to one address until a reporter on another node responds, for half of the time that there is.
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

// ask connects to one reporter, whichever the address leads to, and returns its node.
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

// pick is one of the addresses that a name stands for: a dialer would take the same first
// one each time.
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

// isNoEndpoint reports whether a Service, or a name, has no ready peer. Load balancers of sockets
// (Calico's, and Cilium's on some versions) return EPERM then.
func isNoEndpoint(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPERM) || errors.As(err, &name) && name.IsNotFound
}
