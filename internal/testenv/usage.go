package testenv

import (
	"time"

	"github.com/prometheus/procfs"
)

// Usage is what a process uses of the machine.
type Usage struct {
	RSS, Peak int64 // bytes
	CPU       time.Duration
}

// UsageOf reads what a process uses.
func UsageOf(pid int) (Usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, err
	}
	status, err := process.NewStatus()
	if err != nil {
		return Usage{}, err
	}
	stat, err := process.Stat()
	if err != nil {
		return Usage{}, err
	}
	return Usage{RSS: int64(status.VmRSS), Peak: int64(status.VmHWM), CPU: time.Duration(stat.CPUTime() * float64(time.Second))}, nil
}
