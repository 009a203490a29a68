package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// process is a child that can be started again after it ended. It never outlives us where
// the system can promise that.
type process struct {
	path string
	args []string
	log  string

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the child has its own copy
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = out, out
	// Control planes of tests are small, and with the default of 100 garbage collection takes a fifth of their CPU
	// time. Those of benchmarks and of the demo have the default.
	if testing.Testing() && os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC=400")
	}
	if err := StartChild(cmd); err != nil {
		return fmt.Errorf("starting %s (is it built? make kube): %w", filepath.Base(p.path), err)
	}
	p.cmd, p.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait() // how it ended is read from ProcessState
		close(done)
	}(p.done)
	return nil
}

// kill ends the process at once and returns when it is gone. It is no error if it has
// ended before or was never started.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.done
	p.cmd = nil
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// exited says whether the process has ended, and how.
func (p *process) exited() (bool, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return true, "was not started"
	}
	select {
	case <-p.done:
		return true, "ended with " + p.cmd.ProcessState.String()
	default:
		return false, ""
	}
}

// tail is the end of what the process printed.
func (p *process) tail() string {
	const size = 4096
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-size):])
}
