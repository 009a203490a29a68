package check

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// CNI asks the CNI plugins of this node with the CNI verb STATUS or, with canary, by having
// them connect something.
type CNI struct {
	// confDir is where the configuration is. Absent: /etc/cni/net.d.
	ConfDir string `json:"confDir,omitempty"`
	// binDirs are where the plugins are. Absent: /opt/cni/bin.
	BinDirs []string `json:"binDirs,omitempty"`
	// canary connects a scratch network namespace to the network as if it were a pod, sees that
	// it has an address and gets a response, and disconnects it. Absent: the plugins
	// are only asked. {} is a canary that its gateway answers.
	Canary *Canary `json:"canary,omitempty"`
}

// Canary configures the canary.
type Canary struct {
	// target is what must respond: an IP address, e.g. 10.96.0.10, or host:port, where a
	// refusal is an answer as well. Absent: the gateway that the plugins name.
	Target string `json:"target,omitempty"`
	// stateDir is a directory of the host that keeps what is to be taken back after a crash.
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
		return healthy(ReasonNetworkOK, fmt.Sprintf("network %q is configured; its version of CNI (%s) cannot be asked for more", answer.Network, answer.Version))
	}
	return healthy(ReasonNetworkOK, fmt.Sprintf("the plugins of network %q report that they can take pods", answer.Network))
}

type cniCanary struct{ canary *cni.Canary }

// grace is the time that removing a canary may need.
func (cniCanary) grace() time.Duration { return 25 * time.Second }

// Run takes back what a killed reporter left before it connects a canary of its own.
func (c cniCanary) Run(ctx context.Context) Observation {
	if err := c.canary.Run(ctx); err != nil {
		return networkFailure(err)
	}
	return healthy(ReasonNetworkOK, "a canary was connected to the network and answered")
}

func networkFailure(err error) Observation {
	var failure *cni.Error
	if !errors.As(err, &failure) {
		return failed("NetworkUnknown", "the check was ended")
	}
	if failure.Reason == cni.StatusNotReady || failure.Reason == cni.NoConfig {
		return unhealthy(string(failure.Reason), failure.Detail)
	}
	return failed(string(failure.Reason), failure.Detail)
}
