// Package integration tests the manager against a real API server and etcd.
//
// Most tests share one control plane and one manager; each has rules, labels and taints of
// its own, so they run side by side. Tests that stop, kill or count have a control plane to
// themselves.
package integration_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/readygate/readygate/internal/testenv"
)

var shared struct {
	start    sync.Once
	cluster  *testenv.Cluster
	metrics  *prometheus.Registry
	stop     func() error
	startErr error
}

func TestMain(m *testing.M) {
	testenv.Quiet()
	code := m.Run()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			code = 1
		}
	}
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	testenv.CleanUp()
	os.Exit(code)
}

// cluster is the control plane that tests share, with a manager running in this process.
func cluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	shared.start.Do(func() {
		shared.cluster, shared.startErr = testenv.NewCluster(context.Background())
		if shared.startErr == nil {
			shared.startErr = shared.cluster.InstallPolicies(context.Background())
		}
		if shared.startErr == nil {
			shared.metrics, shared.stop, shared.startErr = shared.cluster.RunManager()
		}
	})
	if shared.startErr != nil {
		t.Fatalf("starting the shared control plane: %v", shared.startErr)
	}
	return shared.cluster
}

// sized returns full, or short with -short, as in make test.
func sized(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// nameOf is a name that no other test uses.
var nameOf = testenv.NameOf
