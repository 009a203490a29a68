package podrule

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/readygate/readygate/internal/core/agents"
)

// watcher decides which agents are alive by the clock of this process: those whose lease changed within
// agents.Lasts. It does not compare clocks of two machines, except for a lease that was never seen before and is
// older than maxClockSkew. The zero value is ready for use; it is safe for concurrent use.
type watcher struct {
	mu    sync.Mutex
	seen  map[string]sighting
	swept time.Time
}

// sighting is a lease as it was last seen.
type sighting struct {
	version string
	renewed time.Time
	at      time.Time
	report  agents.Report
}

// maxClockSkew is more than the clocks of two machines differ.
const maxClockSkew = 10 * agents.Lasts

// See records the lease, and returns what its agent reports and whether the agent is alive.
func (w *watcher) See(lease *coordinationv1.Lease, now time.Time) (agents.Report, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sweep(now)
	var renewed time.Time
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	s, known := w.seen[lease.Name]
	if !known || !s.renewed.Equal(renewed) {
		s.renewed, s.at = renewed, now
		if !known && now.Sub(renewed) > maxClockSkew {
			s.at = time.Time{}
		}
	}
	if !known || s.version != lease.ResourceVersion {
		s.version, s.report = lease.ResourceVersion, agents.ReportOf(lease)
	}
	if w.seen == nil {
		w.seen = map[string]sighting{}
	}
	w.seen[lease.Name] = s
	return s.report, now.Sub(s.at) < agents.Lasts
}

// sweep removes leases that have not changed for long.
func (w *watcher) sweep(now time.Time) {
	if now.Sub(w.swept) < maxClockSkew {
		return
	}
	w.swept = now
	for name, s := range w.seen {
		if now.Sub(s.at) > 2*maxClockSkew && now.Sub(s.renewed) > 2*maxClockSkew {
			delete(w.seen, name)
		}
	}
}
