package testenv

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Shared is one control plane for all tests of a package. The first test that asks for it starts it.
type Shared struct {
	// Setup prepares the control plane. Nil means WithManager.
	Setup func(context.Context, *Shared) error
	// Metrics has the metrics of the manager if Setup runs one in this process.
	Metrics *prometheus.Registry

	*Cluster
	start sync.Once
	err   error
	stop  func() error
}

// WithManager installs the policies and runs a manager in this process.
func WithManager(ctx context.Context, s *Shared) (err error) {
	if err := s.InstallPolicies(ctx); err != nil {
		return err
	}
	s.Metrics, s.stop, err = s.RunManager()
	return err
}

// StopWith makes Stop call this function, whose error Stop reports.
func (s *Shared) StopWith(stop func() error) { s.stop = stop }

// Get returns the control plane.
func (s *Shared) Get(t testing.TB) *Cluster {
	t.Helper()
	s.start.Do(func() {
		setup := s.Setup
		if setup == nil {
			setup = WithManager
		}
		ctx := context.Background()
		if s.Cluster, s.err = NewCluster(ctx); s.err == nil {
			s.err = setup(ctx, s)
		}
	})
	if s.err != nil {
		t.Fatalf("starting the shared control plane: %v", s.err)
	}
	return s.Cluster
}

// Main runs the tests, stops what they started, and returns the exit code: 1 if the manager failed. It is for TestMain.
func (s *Shared) Main(m *testing.M) int {
	Quiet()
	code := m.Run()
	if s.stop != nil {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			code = 1
		}
	}
	if s.Cluster != nil {
		_ = s.Stop()
	}
	CleanUp()
	return code
}
