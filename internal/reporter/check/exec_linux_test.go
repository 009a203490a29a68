package check_test

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Process 1 of a container must reap orphans. This test does not run in parallel: it makes
// this process a subreaper.
func TestEndedChildrenAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	for name, goesOn := range map[string]string{"of a command that hangs": "wait", "of a command that ends": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			spec, grandchild := family(t, goesOn)
			observed(t, spec, 500*time.Millisecond)
			if pid := grandchild(); syscall.Kill(pid, 0) == nil {
				t.Error("the grandchild is still in the table of processes")
			}
		})
	}
}
