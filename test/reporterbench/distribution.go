package main

import (
	"slices"
	"time"
)

// distribution is a number of durations.
type distribution []time.Duration

// quantile is the smallest duration that so many percent do not exceed.
func (d distribution) quantile(percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// cells are p50, p90, p99 and the longest, for a table.
func (d distribution) cells() []string {
	if len(d) == 0 {
		return []string{"-", "-", "-", "-"}
	}
	var cells []string
	for _, percent := range []int{50, 90, 99, 100} {
		cells = append(cells, seconds(d.quantile(percent)))
	}
	return cells
}
