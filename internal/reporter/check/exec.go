package check

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/readygate/readygate/internal/reporter/command"
)

// Exec runs a command. Exit code 0 is healthy. The output is logged at level debug.
type Exec struct {
	// command is the command and its arguments, e.g. ["/usr/bin/nvidia-smi", "-L"]. It does not run
	// in a shell.
	Command []string `json:"command"`
}

// maxOutput is the maximum number of bytes kept of the output.
const maxOutput = 4 << 10

type execCheck struct {
	command []string
	env     Env
}

func (e *Exec) check(env Env) (Check, error) {
	if len(e.Command) == 0 || e.Command[0] == "" {
		return nil, wrong("command", `is empty, must be a command and its arguments, e.g. ["/usr/bin/nvidia-smi", "-L"]`)
	}
	for i, argument := range e.Command {
		if strings.ContainsRune(argument, 0) {
			return nil, wrong(fmt.Sprintf("command[%d]", i), "contains a zero byte, which an argument must not contain")
		}
	}
	return execCheck{e.Command, env}, nil
}

// Run kills the command at the deadline, and the processes that it started after it has ended.
func (c execCheck) Run(ctx context.Context) Observation {
	output := &command.Head{Limit: maxOutput}
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Stdout, cmd.Stderr = output, output
	command.Bound(cmd)
	err := cmd.Run()
	command.EndGroup(cmd)
	slog.DebugContext(ctx, "Command finished", "command", c.command, "error", err, "output", string(output.Kept))

	name := filepath.Base(c.command[0])
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return healthy(ReasonCommandOK, name+" exited with code 0")
	case ctx.Err() != nil:
		return failed(ReasonCommandTimedOut, fmt.Sprintf("%s did not finish within %v", name, c.env.Timeout))
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return unhealthy(ReasonCommandFailed, fmt.Sprintf("%s exited with code %d", name, exit.ExitCode()))
	case errors.As(err, &exit):
		return unhealthy(ReasonCommandFailed, name+" was terminated by a signal")
	}
	why := "not found"
	if !errors.Is(err, exec.ErrNotFound) {
		why = explainFile(err)
	}
	return failed(ReasonCommandNotRun, fmt.Sprintf("%s cannot be run: %s", name, why))
}
