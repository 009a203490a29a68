// Package integration tests the manager against a real API server and etcd.
//
// Most tests share one control plane and one manager. Each uses separate rules, labels and taints, so they run in
// parallel. Tests that stop or kill processes or count requests have a separate control plane.
package integration_test

import (
	"os"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

var shared testenv.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// cluster returns the control plane that tests share, with a manager running in this process.
func cluster(t *testing.T) *testenv.Cluster { return shared.Get(t) }

// sized returns full, or short with -short, as in make test.
func sized(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// nameOf returns a name that no other test uses.
var nameOf = testenv.NameOf
