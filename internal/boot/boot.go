// Package boot reads the boot ID and the boot time of the node that this process runs on. A container has those of its
// node.
package boot

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	idFile   = "/proc/sys/kernel/random/boot_id"
	statFile = "/proc/stat"

	// rereadInterval is how long a boot time that was read is used. The kernel derives it from the time of day, which may
	// be set.
	rereadInterval = time.Minute
)

var (
	mu     sync.Mutex
	booted time.Time
	read   time.Time
)

// ID returns the boot ID that the kubelet reports for the node; empty if it cannot be read.
func ID() string {
	id, _ := os.ReadFile(idFile)
	return strings.TrimSpace(string(id))
}

// Time returns when the node booted, by its own clock; zero if it cannot be read.
func Time() time.Time {
	mu.Lock()
	defer mu.Unlock()
	if time.Since(read) > rereadInterval {
		stat, _ := os.ReadFile(statFile)
		booted, read = parse(string(stat)), time.Now()
	}
	return booted
}

// parse returns the time in the line btime of /proc/stat.
func parse(stat string) time.Time {
	for line := range strings.Lines(stat) {
		if seconds, found := strings.CutPrefix(strings.TrimSpace(line), "btime "); found {
			if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}
