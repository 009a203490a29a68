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

// Exec runs a command. Exit code 0 is healthy. What it prints is logged at level debug.
type Exec struct {
	// command is the command and its arguments; no shell is involved. E.g.
	// ["/usr/bin/nvidia-smi", "-L"].
	Command []string `json:"command"`
}

// maxOutput is how much of what a command prints is kept.
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
			return nil, wrong(fmt.Sprintf("command[%d]", i), "holds a zero byte, which no command can be given")
		}
	}
	return execCheck{e.Command, env}, nil
}

// Run kills the command when its time is over, and whatever it started when it has ended.
func (c execCheck) Run(ctx context.Context) Observation {
	output := &command.Head{Limit: maxOutput}
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Stdout, cmd.Stderr = output, output
	command.Bound(cmd)
	err := cmd.Run()
	command.EndGroup(cmd)
	slog.DebugContext(ctx, "command ended", "command", c.command, "error", err, "output", string(output.Kept))

	name := filepath.Base(c.command[0])
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return healthy(ReasonCommandOK, name+" succeeds")
	case ctx.Err() != nil:
		return failed(ReasonCommandTimedOut, fmt.Sprintf("%s did not end within %v", name, c.env.Timeout))
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return unhealthy(ReasonCommandFailed, fmt.Sprintf("%s ends with exit code %d", name, exit.ExitCode()))
	case errors.As(err, &exit):
		return unhealthy(ReasonCommandFailed, name+" is ended by a signal")
	}
	why := "not found"
	if !errors.Is(err, exec.ErrNotFound) {
		why = explainFile(err)
	}
	return failed(ReasonCommandNotRun, fmt.Sprintf("%s cannot be run: %s", name, why))
}
