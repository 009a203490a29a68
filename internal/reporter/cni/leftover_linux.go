package cni

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// orphanGrace is how long a plugin of a killed run may go on: most are done in a moment, and
// one that is killed half-way may leave what its DEL does not find.
const orphanGrace = 2 * time.Second

// endPlugins returns when no plugin works for the container any more: one that did would go on
// to give what DEL has just taken back. Those that take too long are killed.
func endPlugins(ctx context.Context, id string) {
	kill := time.Now().Add(orphanGrace)
	for {
		pids := pluginsOf(id)
		if len(pids) == 0 {
			return
		}
		if time.Now().After(kill) {
			for _, pid := range pids {
				killPlugin(pid, id)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// pluginsOf are the processes that were started for the container.
func pluginsOf(id string) []int {
	processes, _ := os.ReadDir("/proc")
	var pids []int
	for _, process := range processes {
		if pid, err := strconv.Atoi(process.Name()); err == nil && pid != os.Getpid() && isPluginOf(pid, id) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isPluginOf looks at the environment, which children inherit. That of a dead process is empty.
func isPluginOf(pid int, id string) bool {
	environ, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	defer func() { _ = environ.Close() }()
	text, _ := io.ReadAll(io.LimitReader(environ, 128<<10))
	return bytes.Contains(text, []byte("CNI_CONTAINERID="+id))
}

// killPlugin takes hold of the process before it looks again, so that another one that has got
// its number is not killed.
func killPlugin(pid int, id string) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = process.Release() }()
	if isPluginOf(pid, id) {
		_ = process.Kill()
	}
}
