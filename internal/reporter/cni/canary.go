package cni

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"time"
)

const (
	// idPrefix is the prefix of every canary's container ID, so that the canaries can be recognized in the
	// records of the plugins.
	idPrefix = "readygate-canary-"
	ifName   = "eth0"

	// cleanupTime is the timeout of the cleanup. It starts after the other steps, so a run may
	// take this much longer than its context.
	cleanupTime = 20 * time.Second
	// answerTime is the timeout for a response of the target.
	answerTime = 5 * time.Second
)

// Canary attaches a temporary network namespace to the network, like the container runtime does
// for a pod. It needs Linux, CAP_SYS_ADMIN, CAP_NET_RAW, and the requirements of the plugins: CAP_NET_ADMIN,
// the host's network and the host's paths.
//
// Plugins that read the pod from the API server (Calico, Cilium) reject a canary, because it has no
// pod. Use Status and other checks for them.
type Canary struct {
	Plugins
	// StateDir holds the records for the cleanup and the namespace. It must survive
	// a reboot, because the records of plugins do. Empty means /var/lib/readygate/canary. If
	// a plugin delegates the work to a daemon, the daemon must see the namespace: StateDir must
	// then have the same path on the host, and its mounts must propagate to the host.
	StateDir string
	// Target must respond to the canary. Empty means the gateways that the plugins return,
	// if any. An IP address is probed by ICMP echo; "host:port" by TCP, where a refused connection is a
	// response too. A host name is resolved on the node, not inside the namespace.
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

// args returns the CNI_ARGS that Kubernetes plugins expect. IgnoreUnknown is for other plugins.
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
