package check_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

func shell(script string) check.Spec {
	return check.Spec{Exec: &check.Exec{Command: []string{"/bin/sh", "-c", script}}}
}

func TestExec(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		spec check.Spec
		want check.Observation
	}{
		"a command that succeeds":     {shell("exit 0"), healthy(check.ReasonCommandOK, "sh exited with code 0")},
		"one that fails":              {shell("echo out; echo err >&2; exit 3"), unhealthy(check.ReasonCommandFailed, "sh exited with code 3")},
		"one that is ended":           {shell("kill -TERM $$"), unhealthy(check.ReasonCommandFailed, "sh was terminated by a signal")},
		"one that is killed":          {shell("kill -KILL $$"), unhealthy(check.ReasonCommandFailed, "sh was terminated by a signal")},
		"one that reads":              {shell("read line && exit 7; exit 0"), healthy(check.ReasonCommandOK, "sh exited with code 0")},
		"arguments are not a script":  {check.Spec{Exec: &check.Exec{Command: []string{"test", "a;b", "=", "a;b"}}}, healthy(check.ReasonCommandOK, "test exited with code 0")},
		"one that is not there":       {check.Spec{Exec: &check.Exec{Command: []string{"/nowhere/tool"}}}, failed(check.ReasonCommandNotRun, "tool cannot be run: no such file or directory")},
		"one that is not in the path": {check.Spec{Exec: &check.Exec{Command: []string{"no-such-tool"}}}, failed(check.ReasonCommandNotRun, "no-such-tool cannot be run: not found")},
		"one that may not be run":     {check.Spec{Exec: &check.Exec{Command: []string{plain}}}, failed(check.ReasonCommandNotRun, "plain cannot be run: permission denied")},
		"one that is no program":      {check.Spec{Exec: &check.Exec{Command: []string{garbage}}}, failed(check.ReasonCommandNotRun, "garbage cannot be run: exec format error")},
		"a directory":                 {check.Spec{Exec: &check.Exec{Command: []string{"/tmp"}}}, failed(check.ReasonCommandNotRun, "tmp cannot be run: permission denied")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 3 {
				expect(t, observed(t, test.spec, long), test.want)
			}
		})
	}
}

// family returns a script that writes the process ID of a long-lived grandchild to a file, and
// continues.
func family(t *testing.T, goesOn string) (spec check.Spec, grandchild func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	return shell("(/bin/sh -c 'echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 600'; true) & until test -e " + file + "; do :; done; " + goesOn), func() int {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		return pid
	}
}

// runs reports whether a process is alive; a zombie is not.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestChildrenOfACommandAreKilledToo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	const timeout = 2 * time.Second
	for name, test := range map[string]struct {
		goesOn string
		want   check.Observation
	}{
		"when its time is over":               {"wait", failed(check.ReasonCommandTimedOut, "sh did not finish within 2s")},
		"also if it does not want to end":     {"trap '' TERM INT HUP; while :; do sleep 1; done", failed(check.ReasonCommandTimedOut, "sh did not finish within 2s")},
		"when it fails":                       {"exit 1", unhealthy(check.ReasonCommandFailed, "sh exited with code 1")},
		"when it succeeds and leaves a child": {"exit 0", healthy(check.ReasonCommandOK, "sh exited with code 0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, grandchild := family(t, test.goesOn)
			began := time.Now()
			expect(t, observed(t, spec, timeout), test.want)
			// All are killed at once: no process keeps the output open until the timeout.
			if took := time.Since(began); took > timeout+900*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			pid := grandchild()
			eventually(t, "the grandchild is gone", func() bool { return !runs(pid) })
		})
	}
}

// This test does not run in parallel: it measures the memory of the process.
func TestEndlessOutputIsNotKept(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	expect(t, observed(t, shell("yes; true"), brief), failed(check.ReasonCommandTimedOut, "sh did not finish within 300ms"))
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
		t.Errorf("%d bytes were taken", taken)
	}
}
