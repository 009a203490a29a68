package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/manager/admission"
)

// Kubectl is the real kubectl with its own home directory.
type Kubectl struct {
	// Strict makes a warning a failure.
	Strict bool

	// Home is the working directory of kubectl.
	Home string

	path string
}

// Kubectl returns kubectl with the rights of a cluster administrator.
func (c *Cluster) Kubectl(t testing.TB) *Kubectl {
	t.Helper()
	k := &Kubectl{path: filepath.Join(Binaries(), "kubectl"), Home: t.TempDir()}
	if _, err := os.Stat(k.path); err != nil {
		t.Fatalf("no kubectl (make kube downloads or builds it): %v", err)
	}
	if err := controlplane.WriteKubeconfig(filepath.Join(k.Home, "kubeconfig"), c.Config); err != nil {
		t.Fatal(err)
	}
	return k
}

// Try runs kubectl in its home directory and returns its output.
func (k *Kubectl) Try(ctx context.Context, args ...string) (string, error) {
	return k.run(ctx, k.Home, k.path, args...)
}

// Run is Try that must succeed.
func (k *Kubectl) Run(t testing.TB, args ...string) string {
	t.Helper()
	return k.Tool(t, k.path, args...)
}

// Script runs sh in a directory, with kubectl on the PATH. It must succeed.
func (k *Kubectl) Script(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := k.run(t.Context(), dir, "sh", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ApplyPolicies runs the command that conditions name, with which an administrator applies the policies of the
// rules. It must succeed.
func (k *Kubectl) ApplyPolicies(t testing.TB) string {
	t.Helper()
	plugin, err := build("kubectl-readiness")
	if err != nil {
		t.Fatalf("building kubectl-readiness: %v", err)
	}
	return k.Script(t, k.Home, "-c", "PATH="+filepath.Dir(plugin)+":$PATH; "+admission.ApplyCommand)
}

// Tool runs another program with the same kubeconfig, such as helm. It must succeed.
func (k *Kubectl) Tool(t testing.TB, path string, args ...string) string {
	t.Helper()
	out, err := k.run(t.Context(), k.Home, path, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Output runs kubectl and returns standard output and standard error.
func (k *Kubectl) Output(ctx context.Context, args ...string) (string, error) {
	out, err := k.command(ctx, k.Home, k.path, args...).CombinedOutput()
	return string(out), err
}

func (k *Kubectl) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + k.Home, "KUBECONFIG=" + filepath.Join(k.Home, "kubeconfig"), "PATH=" + filepath.Dir(k.path) + ":" + os.Getenv("PATH")}
	return cmd
}

func (k *Kubectl) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := k.command(ctx, dir, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	if text := stderr.String(); k.Strict && strings.Contains(text, "Warning") {
		return stdout.String(), fmt.Errorf("%s %s printed a warning: %s", filepath.Base(name), strings.Join(args, " "), text)
	}
	return stdout.String(), nil
}
