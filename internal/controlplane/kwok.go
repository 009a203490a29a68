package controlplane

import (
	"context"
	_ "embed"
	"os"
)

// kwokConfig defines how KWOK simulates nodes and pods; the binary has no default stages.
//
//go:embed kwok.yaml
var kwokConfig []byte

// RebootAnnotation on a node keeps KWOK from making it Ready: it simulates a node that is being rebooted.
const RebootAnnotation = "readygate.dev/simulated-reboot"

// StartKWOK starts KWOK, which simulates the kubelet of every node: nodes become Ready and renew their leases, and pods
// bound to them run. It returns when KWOK is healthy. Stop ends it.
func (c *ControlPlane) StartKWOK(ctx context.Context) error {
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.file("kwok.yaml"), kwokConfig, 0o600); err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfig("kwok", "kwok", adminGroup)
	if err != nil {
		return err
	}
	return c.run(ctx, "kwok", loopbackURL(ports[0])+"/healthz",
		"--config", c.file("kwok.yaml"), "--kubeconfig", kubeconfig, "--server-address", loopbackAddress(ports[0]))
}
