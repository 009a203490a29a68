package controlplane

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter runs on one thread that lives as long as the process: the kernel ends a child
// with Pdeathsig when the thread that started it ends, not the process.
var starter = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// StartChild starts a child that the kernel ends when this process ends, however it ends.
func StartChild(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
	result := make(chan error)
	starter() <- func() { result <- cmd.Start() }
	return <-result
}
