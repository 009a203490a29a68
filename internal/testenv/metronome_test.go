package testenv

import (
	"runtime"
	"slices"
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

// A core that is taken away in the middle of one piece of work says nothing of the speed.
func TestTheSlowestWorkDoesNotCount(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		took []time.Duration
		want time.Duration
	}{
		"nothing":                {nil, 0},
		"one":                    {[]time.Duration{2 * ms}, 2 * ms},
		"one of few":             {[]time.Duration{2 * ms, 900 * ms, 4 * ms}, 3 * ms},
		"one of twenty":          {append(slices.Repeat([]time.Duration{2 * ms}, 19), 900*ms), 2 * ms},
		"two of twenty-one":      {append(slices.Repeat([]time.Duration{2 * ms}, 19), 900*ms, 800*ms), 2 * ms},
		"a slow half counts":     {append(slices.Repeat([]time.Duration{4 * ms}, 11), slices.Repeat([]time.Duration{2 * ms}, 10)...), 2947368},
		"the order is no matter": {append([]time.Duration{900 * ms}, slices.Repeat([]time.Duration{2 * ms}, 19)...), 2 * ms},
	} {
		if got := typical(c.took); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
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
