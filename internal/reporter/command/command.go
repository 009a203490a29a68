// Package command runs commands on the node with a limit on their time, on the processes they start, and on the
// output that is kept.
package command

import (
	"os/exec"
	"time"
)

// lingering is how long the output may stay open after the command is gone: a child that it
// left behind holds it, and would hold us.
const lingering = time.Second

// Bound makes the end of the command's context the end of the command and of its process
// group. It is called before the command is started.
func Bound(cmd *exec.Cmd) {
	cmd.WaitDelay = lingering
	killGroup(cmd)
}

// Head keeps the beginning of what is written to it, and takes the rest without a word: a
// command that cannot write would wait.
type Head struct {
	Limit int
	Kept  []byte
	Over  bool // there was more
}

func (h *Head) Write(p []byte) (int, error) {
	n := min(len(p), h.Limit-len(h.Kept))
	h.Kept = append(h.Kept, p[:n]...)
	h.Over = h.Over || n < len(p)
	return len(p), nil
}
