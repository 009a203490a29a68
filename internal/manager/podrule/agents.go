package podrule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/core/podrule"
)

// young is how old a node must be to be missed an agent: it takes a moment to start.
const young = 30 * time.Second

// liveAgents are the agents that are alive: what they report, by node.
type liveAgents map[string]agents.Report

// agents reads the leases.
func (r *Reconciler) agents(ctx context.Context) (liveAgents, error) {
	var list coordinationv1.LeaseList
	if err := r.Client.List(ctx, &list, client.InNamespace(agents.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the leases of agents: %w", err)
	}
	alive, now := liveAgents{}, r.Clock.Now()
	for i := range list.Items {
		node, ok := agents.NodeOf(&list.Items[i])
		if !ok {
			continue
		}
		if report, ok := r.watcher.See(&list.Items[i], now); ok {
			alive[node] = report
		}
	}
	return alive, nil
}

// gone asks the API server itself whether the agent of a node is gone: a cache may be behind.
func (r *Reconciler) gone(ctx context.Context, node string) (bool, error) {
	var list coordinationv1.LeaseList // the role has no get, which would let leases become params of policies
	if err := r.Live.List(ctx, &list, client.InNamespace(agents.Namespace), client.MatchingFields{metav1.ObjectNameField: agents.Name(node)}); err != nil {
		return false, fmt.Errorf("reading the lease of an agent: %w", err)
	}
	for i := range list.Items {
		if _, alive := r.watcher.See(&list.Items[i], r.Clock.Now()); alive {
			return false, nil
		}
	}
	return true, nil
}

// orphaned are the nodes that have no live agent, by name.
func (r *Reconciler) orphaned(alive liveAgents) []string {
	var nodes []string
	for node := range r.Nodes.All() {
		if _, ok := alive[node.Name]; !ok && r.Clock.Since(node.CreationTimestamp.Time) > young {
			nodes = append(nodes, node.Name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// count is what all agents report of a rule.
func (a liveAgents) count(rule *podrule.Rule) (total podrule.Tally) {
	for node, report := range a {
		if about, ok := report.Rules[rule.UID]; ok {
			total.AddFrom(node, &about.Tally)
		}
	}
	return total
}

// behind is how many agents have not looked with the rule as it is now.
func (a liveAgents) behind(rule *podrule.Rule) int {
	count := 0
	for _, report := range a {
		if about, ok := report.Rules[rule.UID]; !ok || about.Generation < rule.Generation {
			count++
		}
	}
	return count
}

// lastsOn is after which time without news of an agent the manager looks again.
const lastsOn = agents.Lasts + time.Second

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
	maps.DeleteFunc(w.seen, func(_ string, s sighting) bool {
		return now.Sub(s.at) > 2*maxClockSkew && now.Sub(s.renewed) > 2*maxClockSkew
	})
}
