package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/manager"
)

// RunManager runs the manager in this process, as the user that its role is bound to, until
// the returned function is called, which says how it ended. The registry has its metrics.
func (c *Cluster) RunManager() (*prometheus.Registry, func() error, error) {
	config, err := c.ControlPlane.Config(ManagerUser)
	if err != nil {
		return nil, nil, err
	}
	registry := prometheus.NewRegistry()
	options := manager.NewOptions()
	options.RestConfig, options.Registerer, options.HealthAddr = config, registry, "0"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- options.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	return registry, stop, nil
}

// built says that there is something for CleanUp.
var built atomic.Bool

// buildManager builds the real binary once, with the race detector where the tests have it.
var buildManager = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "readygate-manager-")
	if err != nil {
		return "", err
	}
	built.Store(true)
	path := filepath.Join(dir, "readygate-manager")
	args := append([]string{"build"}, raceFlag...)
	cmd := exec.Command("go", append(args, "-o", path, "./cmd/readygate-manager")...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = Root(), os.Stderr, os.Stderr
	return path, cmd.Run()
})

// CleanUp removes what tests built. It is for TestMain, when all of them have ended.
func CleanUp() {
	if built.Load() {
		path, _ := buildManager()
		_ = os.RemoveAll(filepath.Dir(path))
	}
}

// Process is the manager's real binary, running.
type Process struct {
	// Health and Metrics are the addresses of its endpoints.
	Health, Metrics string

	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// StartProcess starts the manager's binary with this identity, as somebody would who runs it
// by hand. It is gone when the test ends.
func (c *Cluster) StartProcess(t testing.TB, user string, args ...string) *Process {
	t.Helper()
	binary, err := buildManager()
	if err != nil {
		t.Fatalf("building the manager: %v", err)
	}
	config, err := c.ControlPlane.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	ports, err := controlplane.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{
		Health:  "127.0.0.1:" + strconv.Itoa(ports[0]),
		Metrics: "127.0.0.1:" + strconv.Itoa(ports[1]),
		done:    make(chan struct{}),
		log:     filepath.Join(t.TempDir(), "manager.log"),
	}
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	p.cmd = exec.Command(binary, append([]string{"--kubeconfig", kubeconfig,
		"--health-probe-bind-address", p.Health, "--metrics-bind-address", p.Metrics}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := controlplane.StartChild(p.cmd); err != nil {
		t.Fatalf("starting the manager: %v", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of the manager:\n%s", p.Log())
		}
	})
	return p
}

// Kill ends the process without warning.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.done
}

// Terminate asks the process to stop and returns when it has, with its exit code.
func (p *Process) Terminate() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log is what the process has printed so far.
func (p *Process) Log() string {
	data, _ := os.ReadFile(p.log)
	return string(data)
}
