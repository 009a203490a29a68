package agentlease

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Watcher knows which agents are alive by its own clock: those whose lease it has seen change lately.
// Clocks of two machines are not compared, but where a lease is so old that none can be so wrong. The
// zero value is ready for use, and safe for concurrent use.
type Watcher struct {
	mu    sync.Mutex
	seen  map[string]sighting
	swept time.Time
}

// sighting is a lease as it was last seen.
type sighting struct {
	version string
	renewed time.Time
	at      time.Time
	report  Report
}

// ancient is how old a lease is that nobody renews, whatever the clocks say.
const ancient = 10 * Lasts

// See looks at a lease: what its agent reports, and whether it is alive.
func (w *Watcher) See(lease *coordinationv1.Lease, now time.Time) (Report, bool) {
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
		if !known && now.Sub(renewed) > ancient {
			s.at = time.Time{}
		}
	}
	if !known || s.version != lease.ResourceVersion {
		s.version, s.report = lease.ResourceVersion, ReportOf(lease)
	}
	if w.seen == nil {
		w.seen = map[string]sighting{}
	}
	w.seen[lease.Name] = s
	return s.report, now.Sub(s.at) < Lasts
}

// sweep forgets leases that have not changed for long.
func (w *Watcher) sweep(now time.Time) {
	if now.Sub(w.swept) < ancient {
		return
	}
	w.swept = now
	for name, s := range w.seen {
		if now.Sub(s.at) > 2*ancient && now.Sub(s.renewed) > 2*ancient {
			delete(w.seen, name)
		}
	}
}
