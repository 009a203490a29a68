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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Peers connects to the reporters of other nodes over the network of pods: one that answers
// proves that packets go from a pod here to a pod there and back. It is for a reporter that
// runs on the network of pods.
//
// A node is not held back by peers that are not ready themselves: one peer that answers is
// enough, only peers that are ready are behind the Service (see PeerPath), and where there is
// none, a node that waited for one counts as healthy.
type Peers struct {
	// service is a Service of the pod's own namespace in front of all reporters, e.g.
	// network-reporter. It is found by the variables that kubelet sets in each container, so
	// no DNS is needed; the Service must be there before the pod.
	Service string `json:"service,omitempty"`
	// address is host and port of the reporters, instead of a service. A name may stand for
	// many addresses.
	Address string `json:"address,omitempty"`
	// patience is how long a node waits for a peer that is ready before it counts as alone,
	// and healthy. Absent: 30s.
	Patience *Duration `json:"patience,omitempty"`
}

const (
	// PeerPath is where a reporter answers its peers.
	PeerPath = "/peer"
	// PeerNodeHeader names the node in such an answer.
	PeerNodeHeader = "Readygate-Node"

	defaultPatience = 30 * time.Second
	// peerTries is how many connections a run tries: a Service may lead to this very node.
	peerTries = 8
)

type peersCheck struct {
	address  string
	patience time.Duration
	env      Env
	now      func() time.Time

	aloneSince time.Time
	waited     bool
}

func (p *Peers) check(env Env) (Check, error) {
	address, err := p.resolve(env)
	if err != nil {
		return nil, err
	}
	c := &peersCheck{address: address, patience: defaultPatience, env: env, now: time.Now}
	if err := p.Patience.AtLeast(0, "patience", "30s"); err != nil {
		return nil, err
	}
	if p.Patience != nil {
		c.patience = p.Patience.Duration
	}
	return c, nil
}

func (p *Peers) resolve(env Env) (string, error) {
	switch {
	case (p.Service == "") == (p.Address == ""):
		return "", wrong("service", "or address must be set, and not both, e.g. service: network-reporter")
	case p.Address != "":
		return p.Address, addressFits(p.Address)
	}
	name := strings.ToUpper(strings.ReplaceAll(p.Service, "-", "_"))
	host, port := env.Variable(name+"_SERVICE_HOST"), env.Variable(name+"_SERVICE_PORT")
	if _, err := strconv.Atoi(port); host == "" || err != nil {
		return "", wrong("service", "is %q, and the variables %s_SERVICE_HOST and %s_SERVICE_PORT are not set: create the Service, with a cluster IP and in the namespace of this pod, before the pod; or set address to host:port", p.Service, name, name)
	}
	return net.JoinHostPort(host, port), nil
}

// tally is what the tries of one run found.
type tally struct{ self, nobody, silent int }

// Run tries until somebody else answers.
func (c *peersCheck) Run(ctx context.Context) Observation {
	var found tally
	for range peerTries {
		node, err := c.ask(ctx)
		switch {
		case err == nil && node != c.env.Node:
			c.aloneSince, c.waited = time.Time{}, false
			return healthy(ReasonPeerReached, "a reporter on another node answers over the network of pods")
		case err == nil:
			found.self++
		case isNobody(err):
			found.nobody++
		default:
			found.silent++
		}
		if ctx.Err() != nil || found.nobody > 0 && found.self+found.silent == 0 {
			break // nobody is there: asking again at once does not help
		}
	}
	if found.silent > 0 {
		c.aloneSince, c.waited = time.Time{}, false
		return failed(ReasonPeersUnreachable, fmt.Sprintf("no reporter of another node answers at %s within %v", c.address, c.env.Timeout))
	}
	return c.alone()
}

// alone waits for a first peer for a while: when many nodes start together, each of them
// finds nobody at first.
func (c *peersCheck) alone() Observation {
	now := c.now()
	if c.aloneSince.IsZero() {
		c.aloneSince = now
	}
	if c.waited = c.waited || now.Sub(c.aloneSince) >= c.patience; c.waited {
		return healthy(ReasonNoPeers, "no other node has a reporter that is ready, so there is nobody to be reached")
	}
	return unhealthy(ReasonNoPeers, fmt.Sprintf("waits up to %v for a reporter of another node to be ready", c.patience))
}

// ask connects to one reporter, whichever the address leads to, and returns its node.
func (c *peersCheck) ask(ctx context.Context) (string, error) {
	tryCtx, cancel := context.WithTimeout(ctx, max(c.env.Timeout/3, 100*time.Millisecond))
	defer cancel()
	address, err := c.pick(tryCtx)
	if err != nil {
		return "", err
	}
	peer := url.URL{Scheme: "http", Host: address, Path: PeerPath}
	request, err := http.NewRequestWithContext(tryCtx, http.MethodGet, peer.String(), nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", userAgent())
	dial, hangUp := lines(tryCtx, 1)
	defer hangUp()
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}, CheckRedirect: stay}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	node := response.Header.Get(PeerNodeHeader)
	if response.StatusCode != http.StatusOK || node == "" {
		return "", errors.New("whoever answers is not a reporter")
	}
	return node, nil
}

// pick is one of the addresses that a name stands for: a dialer would take the same first
// one each time.
func (c *peersCheck) pick(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return "", err
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(addresses[rand.IntN(len(addresses))], port), nil
}

// isNobody says whether a Service, or a name, has no peer that is ready behind it. Load
// balancers of sockets (Calico's, and Cilium's on some versions) say EPERM then.
func isNobody(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPERM) || errors.As(err, &name) && name.IsNotFound
}
