// Package command runs commands on the node with limits on their time, on the processes that they start, and on the
// output that is kept.
package command

import (
	"os/exec"
	"time"
)

// outputTimeout is how long the output may stay open after the command has exited: a remaining child
// process keeps it open, and Wait would block.
const outputTimeout = time.Second

// Bound makes the end of the context kill the command and its process group. Call it before the
// command is started.
func Bound(cmd *exec.Cmd) {
	cmd.WaitDelay = outputTimeout
	killGroup(cmd)
}

// Head keeps the first Limit bytes that are written to it and discards the rest: a
// command that cannot write would block.
type Head struct {
	Limit int
	Kept  []byte
	Over  bool // bytes were discarded
}

func (h *Head) Write(p []byte) (int, error) {
	n := min(len(p), h.Limit-len(h.Kept))
	h.Kept = append(h.Kept, p[:n]...)
	h.Over = h.Over || n < len(p)
	return len(p), nil
}
