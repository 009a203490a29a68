package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
)

// builds has the binaries that tests built, by name.
var builds struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// build builds a program of the project once, with the race detector if the tests have it.
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

// CleanUp removes the binaries that tests built, and stops control planes. TestMain calls it when all tests ended.
func CleanUp() {
	stopIdle()
	builds.mu.Lock()
	defer builds.mu.Unlock()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
}

// Process is a running program of the project.
type Process struct {
	*controlplane.Process
	// Health and Metrics are the addresses of its servers.
	Health, Metrics string
}

// Kill sends SIGKILL. The process may have ended before.
func (p *Process) Kill() { _ = p.Process.Kill() }

// Start builds a program of the project and starts it, with the environment of the test and these variables.
// The process ends with the test.
func Start(t testing.TB, name string, env []string, args ...string) *Process {
	t.Helper()
	binary, err := build(name)
	if err != nil {
		t.Fatalf("building %s: %v", name, err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	child, err := controlplane.StartProcess(cmd, filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Process: child}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, tail(p.Log()))
		}
	})
	return p
}

// tail returns the last lines of a log, for the message of a failed test.
func tail(log string) string {
	const lines = 40
	all := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
