package testenv

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of this thread so far.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
