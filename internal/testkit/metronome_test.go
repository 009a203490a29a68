package testkit

import (
	"runtime"
	"testing"
	"time"
)

func TestTheMetronomeMeasuresWorkAndNotWaiting(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of a thread is not known here")
	}
	began := time.Now()
	m := StartMetronome(t.Context())
	for m.Mean(began) == 0 && time.Since(began) < time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	if took := m.Mean(began); took <= 0 || took > time.Second {
		t.Errorf("the work took %v", took)
	}
	if took := m.Mean(time.Now().Add(time.Hour)); took != 0 {
		t.Errorf("work of the future took %v", took)
	}
}

// The walk goes through all numbers, or it would stay where a cache can follow.
func TestTheWalkGoesEverywhere(t *testing.T) {
	const n = 1000
	next, at, seen := cycle(n), uint32(0), map[uint32]bool{}
	for range n {
		seen[at] = true
		at = next[at]
	}
	if len(seen) != n || at != 0 {
		t.Errorf("saw %d of %d numbers, and ended at %d", len(seen), n, at)
	}
}
