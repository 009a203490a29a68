package testenv

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// beatEvery is the pause between two pieces of work: they must not take anything from the
	// others that share the machine, and there must be many in the shortest phase.
	beatEvery = 200 * time.Millisecond

	walked  = 4 << 20 // numbers: more than a core's own cache holds
	strides = 8 << 10
)

// Metronome measures how fast the machine is: the CPU time of a piece of work that is always the
// same. Machines share their cores, caches and memory with others, and can be half as fast a
// minute later. How long the work had to wait for a core does not count.
type Metronome struct {
	text []byte
	next []uint32 // where to go from each number
	at   uint32

	mu    sync.Mutex
	beats []beat
}

// beat is one piece of work.
type beat struct {
	at   time.Time
	took time.Duration
}

// StartMetronome runs until the context ends.
func StartMetronome(ctx context.Context) *Metronome {
	m := &Metronome{text: []byte(`{"conditions":[` + strings.Repeat(`{"type":"Ready","status":"True","count":12.5},`, 4000) + `null]}`), next: paths()}
	go func() {
		runtime.LockOSThread() // its own CPU time, and nobody else's
		defer runtime.UnlockOSThread()
		pause := time.NewTimer(beatEvery)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
			took := m.work()
			pause.Reset(beatEvery)
			m.mu.Lock()
			m.beats = append(m.beats, beat{time.Now(), took})
			m.mu.Unlock()
		}
	}()
	return m
}

// paths is made once: it takes a moment.
var paths = sync.OnceValue(func() []uint32 { return cycle(walked) })

// cycle goes through all numbers in an order that no cache can guess.
func cycle(n int) []uint32 {
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	next := make([]uint32, n)
	for i, from := range order {
		next[from] = uint32(order[(i+1)%n]) //nolint:gosec // n fits
	}
	return next
}

// work reads a text and walks through memory: a little of what an API server does all day.
func (m *Metronome) work() time.Duration {
	began := threadTime()
	_ = json.Valid(m.text)
	at := m.at
	for range strides {
		at = m.next[at]
	}
	m.at = at
	return threadTime() - began
}

// Mean is that of the work since then; 0: there was none.
func (m *Metronome) Mean(since time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var took []time.Duration
	for i := len(m.beats) - 1; i >= 0 && m.beats[i].at.After(since); i-- {
		took = append(took, m.beats[i].took)
	}
	return typical(took)
}

// slowest is the share of the work that does not count, rounded up. Where the host takes a core away
// in the middle of it, the time until it comes back is counted as CPU time, and one such piece in a
// hundred can double the mean.
const slowest = 0.05

// typical is the mean without the slowest.
func typical(took []time.Duration) time.Duration {
	slices.Sort(took)
	if dropped := int(math.Ceil(slowest * float64(len(took)))); dropped < len(took) {
		took = took[:len(took)-dropped]
	}
	var sum time.Duration
	for _, t := range took {
		sum += t
	}
	return sum / time.Duration(max(1, len(took)))
}
