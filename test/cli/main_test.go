// Package cli tests kubectl readiness: the real binary against a real API server.
package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/readygate/readygate/internal/plugin" // is in the binary: if it changes, no test result is still valid
	"github.com/readygate/readygate/internal/testenv"
)

// shared is the control plane with a manager in this process that all tests use.
var shared struct {
	start   sync.Once
	cluster *testenv.Cluster
	stop    func() error
	err     error
}

// plugin is the directory of the binary.
var plugin string

func TestMain(m *testing.M) {
	testenv.Quiet()
	code := 1
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "building kubectl-readiness:", err)
	} else {
		code = m.Run()
	}
	if shared.stop != nil {
		_ = shared.stop()
	}
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	testenv.CleanUp()
	_ = os.RemoveAll(plugin)
	os.Exit(code)
}

func build() (err error) {
	if plugin, err = os.MkdirTemp("", "readygate-cli-"); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(plugin, "kubectl-readiness"), "./cmd/kubectl-readiness")
	cmd.Dir, cmd.Stdout, cmd.Stderr = testenv.Root(), os.Stderr, os.Stderr
	return cmd.Run()
}

// cluster is the control plane that tests share, with the policies and a manager.
func cluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	shared.start.Do(func() {
		ctx := context.Background()
		if shared.cluster, shared.err = testenv.NewCluster(ctx); shared.err != nil {
			return
		}
		if shared.err = shared.cluster.InstallPolicies(ctx); shared.err != nil {
			return
		}
		_, shared.stop, shared.err = shared.cluster.RunManager()
	})
	if shared.err != nil {
		t.Fatalf("starting a control plane: %v", shared.err)
	}
	return shared.cluster
}
