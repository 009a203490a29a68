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

// counts are the numbers of nodes per state.
type counts struct{ Held, Released, NotSelected int }

// sample holds the numbers of nodes per state from its time until the next sample.
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

// grains are the resolutions of the history by age. Older samples than the last age are dropped.
var grains = []struct{ age, grain time.Duration }{
	{5 * time.Minute, time.Second},
	{time.Hour, 15 * time.Second},
	{24 * time.Hour, 5 * time.Minute},
}

// maxSamples is the maximum number of samples. Thinning leaves about half as many, as follows from the grains, so that
// it is rare.
const maxSamples = 3000

// history holds samples, oldest first. Older samples are coarser, so that the history is bounded.
type history struct {
	mu      sync.Mutex
	samples []sample
}

// add adds a sample, unless nothing has changed.
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

// thin keeps two samples per time span: the one with most held nodes, so that no peak is lost, and the last one. Of the
// samples before the history, only the last one stays, as the initial state.
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

// spanOf returns the time span that contains a time, and its length; 0 if the time is too old.
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

// points returns the samples of one rule, or of all nodes if it is empty.
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

// Run records the history until the context ends. Running it twice is harmless.
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
