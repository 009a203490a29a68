package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const startTimeout = 2 * time.Minute

// Process is a child with a log file. It does not outlive this process if the system supports that.
type Process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// StartProcess starts a command and appends its output to a log file.
func StartProcess(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	cmd.Stdout, cmd.Stderr = out, out
	if err := StartChild(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &Process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends the process a signal. It may have ended before.
func (p *Process) Signal(signal os.Signal) { _ = p.cmd.Process.Signal(signal) }

// Kill sends SIGKILL and returns when the process has ended. It is not an error if the process has ended before.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.done
	return err
}

// Terminate sends SIGTERM and returns the exit code when the process has ended.
func (p *Process) Terminate() int {
	p.Signal(syscall.SIGTERM)
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Log is the output so far.
func (p *Process) Log() string {
	data, _ := os.ReadFile(p.log)
	return string(data)
}

// Alive returns an error with the end of the log if the process has ended.
func (p *Process) Alive() error {
	select {
	case <-p.done:
		const size = 4096
		log := p.Log()
		return fmt.Errorf("%s ended with %v:\n%s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, log[max(0, len(log)-size):])
	default:
		return nil
	}
}

// await returns when the check passes, or shortly after the process has ended.
func (p *Process) await(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.Alive(); err != nil {
			return false, err
		}
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w (last answer: %v)", filepath.Base(p.cmd.Path), err, last)
	}
	return nil
}
