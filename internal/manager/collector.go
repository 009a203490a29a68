package manager

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapGoal is what the heap may grow to before it is collected. Go's usual way, twice what is
	// alive, collects a small heap all the time, and lets a large one become larger than needed.
	heapGoal = 52 << 20

	// leastPercent and mostPercent bound the growth in percent of what is alive.
	leastPercent, mostPercent = 33, 400
)

// tuneCollector keeps the garbage collector's pace fit for the heap, unless the environment sets
// it. Nearly all of a manager's heap is nodes, which stay.
func tuneCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	collected, pace := collections(ctx), 0
	for {
		if fit := percentFor(alive()); fit != pace { // to set it stops the world for a moment
			debug.SetGCPercent(fit)
			pace = fit
		}
		select {
		case <-collected:
		case <-ctx.Done():
			return nil
		}
	}
}

// collections tells of each collection when it is done: only then what is alive is known anew. A
// manager that starts takes all nodes in within seconds, so to look now and then is too late.
func collections(ctx context.Context) <-chan struct{} {
	done := make(chan struct{}, 1)
	var found func(*litter)
	found = func(l *litter) {
		if ctx.Err() != nil {
			return
		}
		select {
		case done <- struct{}{}:
		default:
		}
		runtime.SetFinalizer(l, found)
	}
	runtime.SetFinalizer(&litter{}, found)
	return done
}

// litter is what nobody needs, so that each collection finds it. It is too large to share its place
// with what is needed.
type litter [64]byte

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
