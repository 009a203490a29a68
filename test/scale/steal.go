package main

import (
	"os"
	"strconv"
	"strings"
)

// ticks are how the CPUs of the machine have spent their time so far; zero: not known.
type ticks struct {
	all    int64
	stolen int64 // a process wanted to run, and another guest of the host did
}

// machineTicks reads them, where there is a /proc/stat.
func machineTicks() ticks {
	data, _ := os.ReadFile("/proc/stat") // without it nothing is known, and nothing is said
	return parseTicks(string(data))
}

// parseTicks reads the first line, which sums up all CPUs: user, nice, system, idle, iowait, irq,
// softirq and steal. Two more are of guests of this machine, and are in user and nice already.
func parseTicks(stat string) (t ticks) {
	const steal = 8
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return ticks{}
	}
	for _, field := range fields[1 : steal+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return ticks{}
		}
		t.all, t.stolen = t.all+n, n
	}
	return t
}

// since is the share that was stolen since before; nil: not known.
func (t ticks) since(before ticks) *float64 {
	all, stolen := t.all-before.all, t.stolen-before.stolen
	if before.all == 0 || all <= 0 || stolen < 0 {
		return nil
	}
	share := float64(stolen) / float64(all)
	return &share
}
