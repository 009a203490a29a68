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

// EndGroup ends what a bound command left behind. It also takes note of the end: where the
// reporter is process 1 of a container no other process does, and zombies would pile up.
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
			time.Sleep(time.Millisecond) // killed, but not dead yet
		}
	}
}
