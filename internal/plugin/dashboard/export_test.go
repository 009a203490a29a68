package dashboard

import (
	"time"

	"github.com/readygate/readygate/internal/plugin/view"
)

// Static are the files of the page.
var Static = static

// MaxStreams is how many pages may be open.
const MaxStreams = maxStreams

// SetReadTimeout sets how long a page may take to read.
func (s *Server) SetReadTimeout(timeout time.Duration) { s.readTimeout = timeout }

// SetAfter lets a test end pauses.
func (s *Server) SetAfter(after func(time.Duration) <-chan time.Time) { s.after = after }

// Streams is how many pages are open.
func (s *Server) Streams() int { return len(s.streams) }

// History is a history without a server.
type History struct{ history }

// Add keeps how many nodes were held and released, and how many of them a rule named "rule" held.
func (h *History) Add(at time.Time, held, released int) {
	h.add(sample{at: at, all: counts{Held: held, Released: released}, rules: map[string]counts{"rule": {Held: held}}})
}

// Points are the points that the page receives.
func (h *History) Points(rule string) [][4]int64 {
	var points [][4]int64
	for _, p := range h.points(rule) {
		points = append(points, p)
	}
	return points
}

// Distribution is a distribution in plain numbers.
type Distribution struct {
	Count       int
	Median, P90 int64
	Bars        map[int64]int
}

// TimesOf is the distribution over nodes; bars without nodes are left out.
func TimesOf(nodes []view.Node, rule string) Distribution {
	t := timesOf(nodes, rule)
	d := Distribution{Count: t.Count, Median: t.Median, P90: t.P90, Bars: map[int64]int{}}
	for _, b := range t.Bars {
		if b.Count > 0 {
			d.Bars[b.UpTo] = b.Count
		}
	}
	return d
}
