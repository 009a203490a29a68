package testenv

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/manager"
)

// RunManager runs the manager in this process, as ManagerUser. The returned function stops it and returns its
// error. The registry has its metrics.
func (c *Cluster) RunManager(change ...func(*manager.Options)) (*prometheus.Registry, func() error, error) {
	config, err := c.ControlPlane.Config(ManagerUser)
	if err != nil {
		return nil, nil, err
	}
	registry, stop := RunManager(config, change...)
	return registry, stop, nil
}

// RunManager is Cluster.RunManager for a manager with another client configuration.
func RunManager(config *rest.Config, change ...func(*manager.Options)) (*prometheus.Registry, func() error) {
	registry := prometheus.NewRegistry()
	options := manager.NewOptions()
	options.RestConfig, options.Registerer, options.HealthAddr = config, registry, "0"
	for _, set := range change {
		set(options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- options.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	return registry, stop
}

// StartProcess starts the manager's binary as this user. The process ends with the test.
func (c *Cluster) StartProcess(t testing.TB, user string, args ...string) *Process {
	t.Helper()
	config, err := c.ControlPlane.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	health, metrics := FreeAddress(t), FreeAddress(t)
	p := Start(t, "readygate-manager", nil, append([]string{"--kubeconfig", kubeconfig,
		"--health-probe-bind-address", health, "--metrics-bind-address", metrics}, args...)...)
	p.Health, p.Metrics = health, metrics
	return p
}

// FreeAddress returns an address on loopback on which no process listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(ports[0])
}
