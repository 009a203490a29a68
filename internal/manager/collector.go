package manager

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapGoal is what the heap may grow to before it is collected. Go's usual way, twice what is
	// alive, collects a small heap all the time, and lets a large one become larger than needed.
	heapGoal = 52 << 20

	// leastPercent and mostPercent bound the growth in percent of what is alive.
	leastPercent, mostPercent = 33, 400

	// tuneEvery is how often what is alive is looked at: it grows and shrinks with the nodes. It
	// is short because a manager that starts takes all nodes in within seconds.
	tuneEvery = 200 * time.Millisecond
)

// tuneCollector keeps the garbage collector's pace fit for the heap, unless the environment sets
// it. Nearly all of a manager's heap is nodes, which stay.
func tuneCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	again := time.NewTicker(tuneEvery)
	defer again.Stop()
	pace := 0
	for {
		if fit := percentFor(alive()); fit != pace { // to set it stops the world for a moment
			debug.SetGCPercent(fit)
			pace = fit
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// percentFor is how much a heap may grow before it is collected, in percent of what is alive.
func percentFor(alive uint64) int {
	if alive >= heapGoal {
		return leastPercent
	}
	return int(min(mostPercent, max(leastPercent, 100*(heapGoal-alive)/max(1, alive)))) //nolint:gosec // it is bounded
}

// alive is what the last collection left, in bytes.
func alive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
