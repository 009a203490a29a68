package lab

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

// Whether it is interrupted or killed in the middle, a sandbox leaves nothing behind: no
// process, namespace, mount, cgroup or setting. One that was killed leaves files and empty
// cgroups, which the next one removes.
func TestASandboxLeavesNothingBehind(t *testing.T) {
	if reason := missing(); reason != "" {
		t.Skip(reason)
	}
	before := readSettings()
	binary := os.Getenv("READYGATE_E2E_BINARY") // set where there is no compiler
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "e2e.test")
		if out, err := exec.Command("go", "test", "-c", "-o", binary, "..").CombinedOutput(); err != nil {
			t.Fatalf("building the scenarios: %v\n%s", err, out)
		}
	}
	interrupted := runUntilNodesAreUp(t, binary, syscall.SIGINT)
	if left := leftovers(interrupted, before); len(left) > 0 {
		t.Errorf("after Ctrl-C there are still: %s", strings.Join(left, "; "))
	}
	killed := runUntilNodesAreUp(t, binary, syscall.SIGKILL)
	testenv.Eventually(t, "what the kernel removes after SIGKILL to be gone", func(context.Context) error {
		for _, what := range leftovers(killed, before) {
			if !strings.HasPrefix(what, "the directory") && !strings.HasPrefix(what, "the cgroup") {
				return errors.New(what)
			}
		}
		return nil
	})
	removeLeftovers()
	if left := leftovers(killed, before); len(left) > 0 {
		t.Errorf("after SIGKILL and another start there are still: %s", strings.Join(left, "; "))
	}
}

// runUntilNodesAreUp runs a scenario until its nodes are up, sends it the signal, and returns its
// directory when it has ended.
func runUntilNodesAreUp(t *testing.T, binary string, signal syscall.Signal) string {
	t.Helper()
	cmd := exec.Command(binary, "-test.v", "-test.run=^TestLabNodesJoinAndRecover$")
	cmd.Dir = ".."
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), prefix+strconv.Itoa(cmd.Process.Pid))
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "nodes are up") {
		t.Log(lines.Text())
	}
	if !exists(dir) {
		t.Fatalf("the sandbox has no directory %s", dir)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // until everybody who could write has ended
	}
	_ = cmd.Wait() // it was killed
	return dir
}
