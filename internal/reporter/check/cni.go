package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// CNI checks the CNI plugins of this node with the CNI verb STATUS or, if canary is set, by attaching
// a network namespace.
type CNI struct {
	// confDir is the directory of the CNI configuration. Absent: /etc/cni/net.d.
	ConfDir string `json:"confDir,omitempty"`
	// binDirs are the directories of the plugins. Absent: /opt/cni/bin.
	BinDirs []string `json:"binDirs,omitempty"`
	// canary attaches a temporary network namespace to the network like a pod, verifies that
	// it has an address and gets a response, and detaches it. Absent: the check calls only
	// STATUS. {} is a canary that waits for a response of its gateway.
	Canary *Canary `json:"canary,omitempty"`
}

// Canary configures the canary.
type Canary struct {
	// target is the address that must respond: an IP address, e.g. 10.96.0.10, or host:port, where a
	// refused connection counts as a response. Absent: the gateway that the plugins return.
	Target string `json:"target,omitempty"`
	// stateDir is a directory of the host with the records that a cleanup after a crash needs.
	// Absent: /var/lib/readygate/canary.
	StateDir string `json:"stateDir,omitempty"`
}

func (c *CNI) check(Env) (Check, error) {
	if dir := c.ConfDir; dir != "" && !filepath.IsAbs(dir) {
		return nil, wrong("confDir", "is %q, must be an absolute path, e.g. /etc/cni/net.d", dir)
	}
	for i, dir := range c.BinDirs {
		if !filepath.IsAbs(dir) {
			return nil, wrong(fmt.Sprintf("binDirs[%d]", i), "is %q, must be an absolute path, e.g. /opt/cni/bin", dir)
		}
	}
	plugins := cni.Plugins{ConfDir: c.ConfDir, BinDirs: c.BinDirs}
	if c.Canary == nil {
		return cniStatus{plugins}, nil
	}
	if dir := c.Canary.StateDir; dir != "" && !filepath.IsAbs(dir) {
		return nil, wrong("canary.stateDir", "is %q, must be an absolute path, e.g. /var/lib/readygate/canary", dir)
	}
	canary := &cni.Canary{Plugins: plugins, StateDir: c.Canary.StateDir, Target: c.Canary.Target}
	if canary.Validate() != nil {
		return nil, wrong("canary.target", "is %q, must be an IP address or host:port, e.g. 10.96.0.10 or 10.96.0.1:443", c.Canary.Target)
	}
	return cniCanary{canary}, nil
}

type cniStatus struct{ plugins cni.Plugins }

func (c cniStatus) Run(ctx context.Context) Observation {
	answer, err := c.plugins.Status(ctx)
	switch {
	case err != nil:
		return networkFailure(err)
	case !answer.Asked:
		return healthy(ReasonNetworkOK, fmt.Sprintf("network %q is configured; its cniVersion %s does not support STATUS", answer.Network, answer.Version))
	}
	return healthy(ReasonNetworkOK, fmt.Sprintf("the plugins of network %q report that they can accept pods", answer.Network))
}

type cniCanary struct{ canary *cni.Canary }

// grace is the maximum time for the removal of a canary.
func (cniCanary) grace() time.Duration { return 25 * time.Second }

// Run first removes the canary of a killed reporter, then attaches its own.
func (c cniCanary) Run(ctx context.Context) Observation {
	if err := c.canary.Run(ctx); err != nil {
		return networkFailure(err)
	}
	return healthy(ReasonNetworkOK, "a canary was attached to the network and passed its checks")
}

func networkFailure(err error) Observation {
	var failure *cni.Error
	if !errors.As(err, &failure) {
		return failed("NetworkUnknown", "the check was cancelled")
	}
	if failure.Reason == cni.StatusNotReady || failure.Reason == cni.NoConfig {
		return unhealthy(string(failure.Reason), failure.Detail)
	}
	return failed(string(failure.Reason), failure.Detail)
}
