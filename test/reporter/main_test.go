// Package reporter tests reporters, and what limits them, against a real API server and etcd.
//
// Tests share one control plane; each has nodes and accounts of its own, so they run side by
// side.
package reporter_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

var shared struct {
	start   sync.Once
	cluster *testenv.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	testenv.CleanUp()
	os.Exit(code)
}

// cluster is the control plane that tests share.
func cluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	shared.start.Do(func() { shared.cluster, shared.err = testenv.NewCluster(context.Background()) })
	if shared.err != nil {
		t.Fatalf("starting the shared control plane: %v", shared.err)
	}
	return shared.cluster
}

// nameOf is a name that no other test uses.
var nameOf = testenv.NameOf
