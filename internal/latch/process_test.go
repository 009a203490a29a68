//go:build unix

package latch_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// largest is what the binary may have.
const largest = 2 << 20

// The process is what the kubelet sees: its size, its words and its status.
func TestLatchProcess(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "readygate-latch")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "github.com/readygate/readygate/cmd/readygate-latch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, output)
	}
	process := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), binary, args...)
		command.Env = []string{"READYGATE_POD_IP=10.0.0.7"}
		return command
	}

	t.Run("is small", func(t *testing.T) {
		info, err := os.Stat(binary)
		must(t, err)
		t.Logf("the binary has %d KiB", info.Size()>>10)
		if info.Size() > largest {
			t.Errorf("the binary has %d bytes, must have at most %d", info.Size(), largest)
		}
	})
	t.Run("does not succeed when it is stopped", func(t *testing.T) {
		command := process()
		stdout, err := command.StdoutPipe()
		must(t, err)
		var stderr bytes.Buffer
		command.Stderr = &stderr
		must(t, command.Start())
		if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, "waiting for a key") {
			t.Errorf("it logged %q, %v", line, err)
		}
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid)); err == nil {
			t.Logf("VmRSS%s", lineAfter(string(status), "VmRSS"))
		}
		must(t, command.Process.Signal(syscall.SIGTERM))
		_ = command.Wait() // the status reports it
		if code := command.ProcessState.ExitCode(); code != 143 || stderr.String() != "readygate-latch: stopped before the latch was open\n" {
			t.Errorf("it ended with %d, want 143, and logged %q", code, &stderr)
		}
	})
	t.Run("succeeds when it is open, without a reader of its output", func(t *testing.T) {
		reader, writer, err := os.Pipe()
		must(t, err)
		must(t, reader.Close())
		command := process()
		command.Env = append(command.Env, "READYGATE_DEADLINE=1")
		command.Stdout, command.Stderr = writer, writer
		must(t, command.Run())
		must(t, writer.Close())
	})
	t.Run("prints version and help", func(t *testing.T) {
		for arg, want := range map[string]string{"--version": "readygate-latch ", "--help": "READYGATE_DEADLINE", "-h": "READYGATE_POD_IP"} {
			if output, err := process(arg).Output(); err != nil || !strings.Contains(string(output), want) {
				t.Errorf("%s: %v, %q", arg, err, output)
			}
		}
	})
	t.Run("rejects arguments", func(t *testing.T) {
		command := process("--deadline", "60")
		output, _ := command.CombinedOutput() // the status reports it
		if code := command.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(output), "see --help") {
			t.Errorf("it ended with %d, want 2, and logged %q", code, output)
		}
	})
}

// lineAfter is what a text has after a word, in the same line.
func lineAfter(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}
