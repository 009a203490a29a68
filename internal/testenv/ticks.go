package testenv

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Ticks are how the CPUs of the machine have spent their time so far; zero: not known.
type Ticks struct {
	at   time.Time
	cpus int64

	busy   int64
	idle   int64 // nothing to do, or waiting for a disk
	stolen int64 // something wanted to run, and another guest of the host did; and more, see Stolen
}

// MachineTicks reads them, where there is a /proc/stat.
func MachineTicks() Ticks {
	data, _ := os.ReadFile("/proc/stat") // without it nothing is known, and nothing is said
	return parseTicks(string(data), time.Now())
}

// parseTicks reads the first line, which sums up all CPUs: user, nice, system, idle, iowait, irq,
// softirq and steal. Two more are of guests of this machine, and are in user and nice already. A line
// for each CPU follows.
func parseTicks(stat string, at time.Time) Ticks {
	const idle, wait, steal = 4, 5, 8
	line, rest, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return Ticks{}
	}
	t := Ticks{at: at}
	for i, field := range fields[1 : steal+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Ticks{}
		}
		switch i + 1 {
		case idle, wait:
			t.idle += n
		case steal:
			t.stolen = n
		default:
			t.busy += n
		}
	}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "cpu") {
			t.cpus++
		}
	}
	return t
}

// Stolen is the share of all CPU time since before that was stolen; nil: not known. What has neither
// worked nor been idle was stolen, but no more than the kernel says: on some hosts that counts most
// of what a CPU sleeps too, though it is idle.
func (t Ticks) Stolen(before Ticks) *float64 {
	all, said := float64(t.at.Sub(before.at))*float64(t.cpus)/float64(tick), t.stolen-before.stolen
	if before.cpus == 0 || t.cpus != before.cpus || all <= 0 || said < 0 {
		return nil
	}
	lost := max(0, all-float64(t.busy-before.busy)-float64(t.idle-before.idle))
	share := min(lost, float64(said)) / all
	return &share
}

// Busy is for how long CPUs have worked since before, for anybody on this machine.
func (t Ticks) Busy(before Ticks) time.Duration {
	return tick * time.Duration(t.busy-before.busy)
}
