package podgate

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Where the kernel tells of its boot. A container sees that of its node.
const (
	bootFile = "/proc/sys/kernel/random/boot_id"
	statFile = "/proc/stat"
)

// bootID is the boot ID of the node; empty if it cannot be read.
func bootID() string {
	id, _ := os.ReadFile(bootFile)
	return strings.TrimSpace(string(id))
}

// boot tells when the node booted. The kernel reckons back from the time of day, which may be set: so it
// is asked now and then.
type boot struct {
	mu   sync.Mutex
	at   time.Time
	read time.Time
}

// time is when the node booted; zero if that cannot be read.
func (b *boot) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.read) > time.Minute {
		data, err := os.ReadFile(statFile)
		b.at, b.read = time.Time{}, time.Now()
		if err == nil {
			b.at = bootTime(string(data))
		}
	}
	return b.at
}

// bootTime is what the line btime says.
func bootTime(stat string) time.Time {
	for line := range strings.Lines(stat) {
		if seconds, ok := strings.CutPrefix(strings.TrimSpace(line), "btime "); ok {
			if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
				return time.Unix(n, 0)
			}
		}
	}
	return time.Time{}
}
