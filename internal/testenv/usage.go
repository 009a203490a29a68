package testenv

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process takes of the machine.
type Usage struct {
	RSS, Peak int64 // bytes
	CPU       time.Duration
}

// tick is the unit of times in /proc, on every Linux.
const tick = 10 * time.Millisecond

// UsageOf reads what a process takes.
func UsageOf(pid int) (Usage, error) {
	var u Usage
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		field, wanted := map[string]*int64{"VmRSS": &u.RSS, "VmHWM": &u.Peak}[name]
		if !wanted {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return u, fmt.Errorf("reading %s/status: %w", dir, err)
		}
		*field = kilobytes << 10
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	// The name of the program, in brackets, may hold anything; behind it, the 12th and 13th
	// fields are the times in user and in system mode.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("reading %s/stat: it has %d fields", dir, len(fields))
	}
	for _, text := range fields[11:13] {
		ticks, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return u, fmt.Errorf("reading %s/stat: %w", dir, err)
		}
		u.CPU += time.Duration(ticks) * tick
	}
	return u, nil
}
