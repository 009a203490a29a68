// Package integration tests the manager against a real API server and etcd.
//
// Most tests share one control plane and one manager; each has rules, labels and taints of
// its own, so they run side by side. Tests that stop, kill or count have a control plane to
// themselves.
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

// nameOf is a name that no other test uses.
var nameOf = testenv.NameOf
