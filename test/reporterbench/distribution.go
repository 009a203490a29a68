package main

import "github.com/readygate/readygate/internal/testenv"

// quantiles are p50, p90, p99 and the longest, for a table.
func quantiles(d testenv.Distribution) []string {
	if len(d) == 0 {
		return []string{"-", "-", "-", "-"}
	}
	var cells []string
	for _, percent := range []int{50, 90, 99, 100} {
		cells = append(cells, seconds(d.Quantile(percent)))
	}
	return cells
}
