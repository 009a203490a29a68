package setup_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/testenv"
)

// The commands of the tutorial run as written: the first block in one terminal, the other blocks in a second one.
func TestTutorialAsWritten(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		t.Skip("the tutorial uses bin/kube, and KUBEBUILDER_ASSETS names another control plane")
	}
	kubeconfig := filepath.Join(testenv.Root(), "bin", "kubeconfig")
	if _, err := os.Stat(kubeconfig); err == nil {
		t.Fatalf("%s exists: end the other make cluster, or remove the file if none runs", kubeconfig)
	}
	blocks := testenv.PageCommands(t, "docs/get-started/tutorial.md", "tutorial")

	first := terminal(t, blocks[0])
	var log strings.Builder
	first.Stdout, first.Stderr = &log, &log
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	t.Cleanup(func() { // Ctrl-C
		_ = syscall.Kill(-first.Process.Pid, syscall.SIGINT)
		<-ended
		if t.Failed() {
			t.Logf("%s\n%s", blocks[0], log.String())
		}
	})
	for { // with empty caches the build takes minutes
		if _, err := os.Stat(kubeconfig); err == nil {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the first block ended without a cluster: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}

	second := terminal(t, strings.Join(blocks[1:], "\n"))
	t.Cleanup(func() { // background processes of the tutorial
		if second.Process != nil {
			_ = syscall.Kill(-second.Process.Pid, syscall.SIGKILL)
		}
	})
	if out, err := second.CombinedOutput(); err != nil {
		t.Errorf("the tutorial fails: %v\n%s", err, out)
	}
}

// terminal returns a shell in the root of the repository that runs the commands until one fails.
func terminal(t *testing.T, commands string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-exc", commands)
	cmd.Dir = testenv.Root()
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}
