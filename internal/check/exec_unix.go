//go:build unix

package check

import (
	"os/exec"
	"syscall"
)

// killGroup makes the end of the context the end of the command and of all its children.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
