//go:build unix

package command

import (
	"os/exec"
	"syscall"
	"time"
)

func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// EndGroup kills the remaining processes of a bound command and reaps them: if the
// reporter is process 1 of its container, no other process does, and zombies would accumulate.
func EndGroup(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGKILL) // usually the group is empty
	for range 100 {
		pid, err := syscall.Wait4(group, nil, syscall.WNOHANG, nil)
		switch {
		case err != nil && err != syscall.EINTR:
			return
		case pid == 0:
			time.Sleep(time.Millisecond) // killed, but still exiting
		}
	}
}
