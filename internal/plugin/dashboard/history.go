package dashboard

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
)

// counts are how many nodes are in each state.
type counts struct{ Held, Released, NotSelected int }

// sample is how many nodes were in each state from one moment on, until the next sample.
type sample struct {
	at    time.Time
	all   counts
	rules map[string]counts
}

func sampleOf(snapshot live.Snapshot, at time.Time) sample {
	s := sample{at: at, rules: make(map[string]counts, len(snapshot.Rules))}
	for _, n := range snapshot.Nodes {
		switch n.State {
		case noderule.Held:
			s.all.Held++
		case noderule.Released:
			s.all.Released++
		case noderule.NotSelected:
			s.all.NotSelected++
		}
	}
	for _, rule := range snapshot.Rules {
		s.rules[rule.Name] = counts{Held: rule.Count.Held, Released: rule.Count.Released}
	}
	return s
}

// grains say how fine history is up to which age. What is older than the last is forgotten.
var grains = []struct{ age, grain time.Duration }{
	{5 * time.Minute, time.Second},
	{time.Hour, 15 * time.Second},
	{24 * time.Hour, 5 * time.Minute},
}

// maxSamples is how many are kept before they are thinned; they are never more. Thinned they
// are about half as many, as follows from the grains, so that thinning is rare.
const maxSamples = 3000

// history is samples, oldest first: coarser when older, so that it is bounded.
type history struct {
	mu      sync.Mutex
	samples []sample
}

// add keeps a sample, unless nothing has changed.
func (h *history) add(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.samples); n > 0 && h.samples[n-1].all == s.all && maps.Equal(h.samples[n-1].rules, s.rules) {
		return
	}
	h.samples = append(h.samples, s)
	if len(h.samples) >= maxSamples {
		h.samples = thin(h.samples, s.at)
	}
}

// thin keeps of each span of time the sample with most held nodes, so that no peak is lost,
// and the last one, which is how it went on. What is forgotten is one span of which only the
// last stays: it is how everything began.
func thin(samples []sample, now time.Time) []sample {
	kept := samples[:0:0]
	for first := 0; first < len(samples); {
		span, grain := spanOf(samples[first].at, now)
		last := first
		for last+1 < len(samples) {
			if next, same := spanOf(samples[last+1].at, now); next != span || same != grain {
				break
			}
			last++
		}
		peak := first
		for i := first; i <= last; i++ {
			if samples[i].all.Held > samples[peak].all.Held {
				peak = i
			}
		}
		if grain > 0 && peak != last {
			kept = append(kept, samples[peak])
		}
		kept = append(kept, samples[last])
		first = last + 1
	}
	return kept
}

// spanOf is the span of time in which a moment lies, and its length; 0 if it is too old.
func spanOf(at, now time.Time) (span time.Time, grain time.Duration) {
	for _, g := range grains {
		if now.Sub(at) < g.age {
			return at.Truncate(g.grain), g.grain
		}
	}
	return time.Time{}, 0
}

// point is a sample for the page: time in milliseconds, held, released, not selected.
type point [4]int64

// points are the samples of one rule, or of all nodes if it is empty.
func (h *history) points(rule string) []point {
	h.mu.Lock()
	defer h.mu.Unlock()
	points := []point{}
	if len(h.samples) > 0 {
		h.samples = thin(h.samples, h.samples[len(h.samples)-1].at)
	}
	for _, s := range h.samples {
		c, there := s.rules[rule]
		if rule == "" {
			c, there = s.all, true
		}
		if there {
			points = append(points, point{s.at.UnixMilli(), int64(c.Held), int64(c.Released), int64(c.NotSelected)})
		}
	}
	return points
}

func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) {
	s.answer(w, http.StatusOK, s.history.points(r.URL.Query().Get("rule")))
}

// Run keeps history until the context is over. To run it twice does no harm.
func (s *Server) Run(ctx context.Context) {
	follower, snapshot := s.options.Fleet.Follow()
	defer follower.Stop()
	for {
		s.history.add(sampleOf(snapshot, s.options.Now()))
		select {
		case <-ctx.Done():
			return
		case <-s.after(grains[0].grain):
		}
		select {
		case <-ctx.Done():
			return
		case <-follower.Changed():
			follower.Take()
			snapshot = s.options.Fleet.Snapshot()
		}
	}
}
