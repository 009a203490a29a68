package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/readygate/readygate/internal/controlplane"
)

// process is a reporter that runs as a container of a pod would.
type process struct {
	cmd  *exec.Cmd
	dir  string
	done chan struct{}
}

// isRoot says whether processes can be given what a pod has.
func isRoot() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// startProcess starts a subject on a node, as an account, with these checks; several only if
// it is ours. Groups are the control groups that it is to run in.
func (l *lab) startProcess(ctx context.Context, s subject, account, node string, checks []check, groups []string) (*process, error) {
	dir := filepath.Join(l.dir, node)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := l.writeToken(ctx, account, node, dir); err != nil {
		return nil, err
	}
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return nil, err
	}
	env, err := l.service()
	if err != nil {
		return nil, err
	}
	env = append(env, "NODE_NAME="+node, "METRICS_BIND_ADDRESS=127.0.0.1:"+strconv.Itoa(ports[0]))
	command := []string{s.path}
	if len(checks) > 1 {
		file := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(file, []byte(config(checks)), 0o600); err != nil {
			return nil, err
		}
		command = append(command, "--config", file)
	} else {
		env = append(env, checks[0].variables()...)
	}
	mounts := dir
	if !isRoot() {
		mounts = ""
		command = append(command, "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	}
	p := &process{dir: dir, done: make(chan struct{})}
	return p, p.start(podCommand(mounts, groups, command...), env)
}

func (p *process) start(args, env []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if filepath.IsAbs(args[0]) {
		self = args[0] // not by way of this program
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own copy
	p.cmd = &exec.Cmd{Path: self, Args: args, Env: env, Stdout: log, Stderr: log}
	if err := controlplane.StartChild(p.cmd); err != nil {
		return fmt.Errorf("starting a reporter: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from ProcessState
		close(p.done)
	}()
	return nil
}

// alive is a context that ends when the process does, with what it said last as the cause.
func (p *process) alive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-p.done:
			cancel(fmt.Errorf("the reporter ended with %v: %s", p.cmd.ProcessState, p.lastWords()))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// lastWords are the end of the log.
func (p *process) lastWords() string {
	const size = 600
	data, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-size):]))
}

// end ends the process and returns when it is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may have ended before
	<-p.done
}
