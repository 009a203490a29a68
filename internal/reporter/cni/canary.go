package cni

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"time"
)

const (
	// idPrefix is how the names of all canaries begin: so that they can be recognized in the
	// plugins' own records.
	idPrefix = "readygate-canary-"
	ifName   = "eth0"

	// cleanupTime bounds the DEL of a canary. It begins when the rest is over, so a run may
	// take so much longer than its context.
	cleanupTime = 20 * time.Second
	// answerTime bounds the wait for an answer.
	answerTime = 5 * time.Second
)

// Canary attaches a scratch network namespace to the network, as the container runtime does it
// for a pod. It needs Linux, CAP_SYS_ADMIN, CAP_NET_RAW, and what the plugins need: CAP_NET_ADMIN,
// the host's network and the host's paths.
//
// Plugins that look the pod up in the API server refuse it, because there is none: Calico and
// Cilium are such. For them, Status and other checks have to do.
type Canary struct {
	Plugins
	// StateDir holds what is needed to take a canary back, and the namespace. It must survive
	// a reboot, because the records of plugins do. Empty means /var/lib/readygate/canary. Where
	// a plugin leaves the work to a daemon, the daemon must see the namespace: then StateDir
	// has the same path in the host, and mounts in it reach the host.
	StateDir string
	// Target is what must respond to the canary. Empty means the gateways that the plugins name,
	// if any. An IP address is asked by ICMP echo; "host:port" by TCP, where a refusal is an
	// answer too. A host's name is looked up from the node, not from inside the namespace.
	Target string
}

func (c *Canary) stateDir() string { return cmp.Or(c.StateDir, "/var/lib/readygate/canary") }

// Validate returns an error if Target is invalid.
func (c *Canary) Validate() error {
	if c.Target == "" {
		return nil
	}
	if _, err := netip.ParseAddr(c.Target); err == nil {
		return nil
	}
	if host, service, err := net.SplitHostPort(c.Target); err == nil && host != "" {
		if port, err := net.LookupPort("tcp", service); err == nil && port != 0 {
			return nil
		}
	}
	return failure(BadTarget, "target %q is neither an IP address (10.96.0.1) nor host:port (10.96.0.1:443)", c.Target)
}

// args are the arguments that plugins made for Kubernetes expect. IgnoreUnknown is for the others.
func args(id string) [][2]string {
	return [][2]string{
		{"IgnoreUnknown", "1"},
		{"K8S_POD_NAMESPACE", "readygate"},
		{"K8S_POD_NAME", "canary"},
		{"K8S_POD_INFRA_CONTAINER_ID", id},
	}
}

func scratchFailed(doing string, err error) error {
	return failure(NotPermitted, "%s: %s", doing, scrub(fmt.Sprint(err)))
}
