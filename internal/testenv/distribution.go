package testenv

import (
	"slices"
	"time"
)

// Distribution is a number of durations.
type Distribution []time.Duration

// Quantile returns the smallest duration that this fraction of the durations does not exceed; 0 if there are none.
func (d Distribution) Quantile(percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
