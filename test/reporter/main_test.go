// Package reporter tests reporters, and the policies that limit them, with a real API server and etcd.
//
// Tests share one control plane; each has its own nodes and accounts, so they run in
// parallel.
package reporter_test

import (
	"context"
	"os"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

var shared = testenv.Shared{Setup: func(context.Context, *testenv.Shared) error { return nil }} // no policies, no manager

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// cluster returns the control plane that tests share.
func cluster(t testing.TB) *testenv.Cluster { return shared.Get(t) }

// nameOf returns a name that no other test uses.
var nameOf = testenv.NameOf
