// Package cli tests the binary of kubectl readiness against a real API server.
package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/readygate/readygate/internal/plugin" // is in the binary: if it changes, no test result is still valid
	"github.com/readygate/readygate/internal/testenv"
)

var shared testenv.Shared

// plugin is the directory of the binary.
var plugin string

func TestMain(m *testing.M) {
	code := 1
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "building kubectl-readiness:", err)
	} else {
		code = shared.Main(m)
	}
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

// cluster returns the control plane that tests share, with the policies and a manager.
func cluster(t *testing.T) *testenv.Cluster { return shared.Get(t) }
