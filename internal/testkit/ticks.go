package testkit

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Ticks are how the CPUs of the machine have spent their time so far; zero: not known.
type Ticks struct {
	all    int64
	idle   int64 // nothing to do, or waiting for a disk
	stolen int64 // a process wanted to run, and another guest of the host did
}

// MachineTicks reads them, where there is a /proc/stat.
func MachineTicks() Ticks {
	data, _ := os.ReadFile("/proc/stat") // without it nothing is known, and nothing is said
	return parseTicks(string(data))
}

// parseTicks reads the first line, which sums up all CPUs: user, nice, system, idle, iowait, irq,
// softirq and steal. Two more are of guests of this machine, and are in user and nice already.
func parseTicks(stat string) (t Ticks) {
	const idle, wait, steal = 4, 5, 8
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return Ticks{}
	}
	for i, field := range fields[1 : steal+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Ticks{}
		}
		t.all, t.stolen = t.all+n, n
		if i+1 == idle || i+1 == wait {
			t.idle += n
		}
	}
	return t
}

// Stolen is the share that was stolen since before; nil: not known.
func (t Ticks) Stolen(before Ticks) *float64 {
	all, stolen := t.all-before.all, t.stolen-before.stolen
	if before.all == 0 || all <= 0 || stolen < 0 {
		return nil
	}
	share := float64(stolen) / float64(all)
	return &share
}

// Busy is for how long CPUs have worked since before, for anybody on this machine.
func (t Ticks) Busy(before Ticks) time.Duration {
	return tick * time.Duration(t.all-t.idle-t.stolen-(before.all-before.idle-before.stolen))
}
