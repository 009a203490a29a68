package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// process is a subject that runs.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// start starts the subject of the world.
func (w *world) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := []string{self, "floor", "--kubeconfig", w.kubeconfig, "--taints", strings.Join(w.witness.taints, ",")}
	if w.subject == report.Ours {
		command = []string{
			w.manager, "--kubeconfig", w.kubeconfig, "--leader-elect", "--leader-election-namespace", testenv.ManagerNamespace,
			"--health-probe-bind-address=0", "--metrics-bind-address=0",
		}
	}
	p := &process{cmd: exec.Command(command[0], command[1:]...), log: filepath.Join(w.dir, "subject.log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := controlplane.StartChild(p.cmd); err != nil {
		return fmt.Errorf("starting %s: %w", w.subject, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from ProcessState
		close(p.done)
	}()
	w.process = p
	return nil
}

// alive returns an error with the end of the log if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.done:
		const size = 2000
		data, _ := os.ReadFile(p.log)
		return fmt.Errorf("the controller ended with %v:\n%s", p.cmd.ProcessState, data[max(0, len(data)-size):])
	default:
		return nil
	}
}

// stop stops the process as a rollout does.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended before
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
