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

// orphanGrace is how long a plugin of a killed run may keep running: most finish quickly, and
// DEL may not find the remains of a plugin that is killed before it finishes.
const orphanGrace = 2 * time.Second

// endPlugins returns when no plugin runs for the container anymore: a running plugin could add again
// what DEL has removed. It kills plugins after orphanGrace.
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

// pluginsOf returns the processes that were started for the container.
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

// isPluginOf checks the environment, which child processes inherit. A dead process has an empty one.
func isPluginOf(pid int, id string) bool {
	environ, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	defer func() { _ = environ.Close() }()
	text, _ := io.ReadAll(io.LimitReader(environ, 128<<10))
	return bytes.Contains(text, []byte("CNI_CONTAINERID="+id))
}

// killPlugin opens the process before it checks the environment again, so that it does not kill another
// process that reuses the PID.
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
