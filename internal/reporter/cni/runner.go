package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/readygate/readygate/internal/reporter/command"
)

// Limits of one run of a plugin.
const (
	maxStdout = 1 << 20
	maxStderr = 4 << 10
	// A plugin cannot be executed while it is being installed.
	installTries = 30
	installPause = 100 * time.Millisecond
)

// runner runs plugins for libcni. Unlike libcni's own runner it keeps a limited
// part of the output, and kills the plugin and its children at the end of the context.
type runner struct{ version.PluginDecoder }

var _ invoke.Exec = &runner{}

// FindInPath finds a plugin as libcni does.
func (*runner) FindInPath(plugin string, dirs []string) (string, error) {
	return invoke.FindInPath(plugin, dirs)
}

// ExecPlugin runs a plugin to its end. The error is a *pluginError.
func (*runner) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	for try := 1; ; try++ {
		out, err := run(ctx, path, stdin, environ)
		if try == installTries || !errors.Is(err, syscall.ETXTBSY) {
			return out, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(installPause):
		}
	}
}

func run(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	stdout, stderr := command.Head{Limit: maxStdout}, command.Head{Limit: maxStderr}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, bytes.NewReader(stdin), &stdout, &stderr
	command.Bound(cmd)

	err := cmd.Run()
	failed := &pluginError{name: filepath.Base(path), cause: err}
	switch ended := cmd.ProcessState; {
	case ended != nil && ended.Success() && !stdout.Over: // also if a child keeps the output open
		return stdout.Kept, nil
	case ctx.Err() != nil:
		failed.late = true
	case ended == nil:
		failed.text = "cannot be run: " + rootCause(err)
	case ended.Success():
		failed.text = "wrote more than 1 MiB, so it is not a CNI plugin"
	default:
		failed.read(stdout.Kept, stderr.Kept, ended.String())
	}
	return nil, failed
}

// rootCause returns the innermost error, without paths.
func rootCause(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// pluginError is the failure of one plugin.
type pluginError struct {
	name  string
	late  bool   // killed at the end of ctx
	code  uint   // CNI error code; 0: none
	text  string // the unchanged message of the plugin
	cause error
}

func (e *pluginError) Error() string { return "plugin " + e.name + " " + e.what() }

func (e *pluginError) Unwrap() error { return e.cause }

func (e *pluginError) what() string {
	if e.late {
		return "did not finish in time"
	}
	return "failed: " + scrub(e.text)
}

// read parses the error of the plugin: a CNI error on standard output, or else any output.
func (e *pluginError) read(stdout, stderr []byte, exit string) {
	var reported types.Error
	if json.Unmarshal(stdout, &reported) == nil && (reported.Code != 0 || reported.Msg != "") {
		e.code, e.text = reported.Code, reported.Error()
		return
	}
	e.text = exit + ", without a CNI error"
	for _, output := range [][]byte{stderr, stdout} {
		if output = bytes.TrimSpace(output); len(output) > 0 {
			e.text += ": " + string(output[:min(len(output), maxStderr)])
			return
		}
	}
}
