package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
)

// builds are the binaries that tests have built so far, by name.
var builds struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// build builds a binary of ours once, with the race detector where the tests have it.
func build(name string) (string, error) {
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if path, done := builds.paths[name]; done {
		return path, nil
	}
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "readygate-test-")
		if err != nil {
			return "", err
		}
		builds.dir, builds.paths = dir, map[string]string{}
	}
	path := filepath.Join(builds.dir, name)
	args := append([]string{"build"}, raceFlag...)
	cmd := exec.Command("go", append(args, "-o", path, "./cmd/"+name)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = Root(), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	builds.paths[name] = path
	return path, nil
}

// CleanUp removes what tests built, and stops control planes. It is for TestMain, when all tests have ended.
func CleanUp() {
	stopIdle()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
}

// Process is a real binary of ours, running.
type Process struct {
	// Health and Metrics are the addresses of its endpoints.
	Health, Metrics string

	cmd  *exec.Cmd
	done chan struct{}
	log  string
}

// Start builds a binary of ours and starts it, with variables besides those of the test. It is
// gone when the test ends.
func Start(t testing.TB, name string, env []string, args ...string) *Process {
	t.Helper()
	binary, err := build(name)
	if err != nil {
		t.Fatalf("building %s: %v", name, err)
	}
	p := &Process{done: make(chan struct{}), log: filepath.Join(t.TempDir(), name+".log")}
	out, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := controlplane.StartChild(p.cmd); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, tail(p.Log()))
		}
	})
	return p
}

// Kill ends the process without warning.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.done
}

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends the process a signal.
func (p *Process) Signal(signal os.Signal) { _ = p.cmd.Process.Signal(signal) }

// Terminate asks the process to stop and returns when it has, with its exit code.
func (p *Process) Terminate() int {
	p.Signal(syscall.SIGTERM)
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

// tail is the end of a log: what a failure needs, and no more than leaves the failure in sight.
func tail(log string) string {
	const lines = 40
	all := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
