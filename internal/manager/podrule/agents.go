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

// agentStartTime is how long the agent of a new node may take to start. A younger node does not count as a node without
// an agent.
const agentStartTime = 30 * time.Second

// liveAgents has the reports of the live agents, by node.
type liveAgents map[string]agents.Report

// agents returns the live agents, from their leases.
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

// gone reports whether the node has no live agent. It reads the lease from the API server: a cache may be stale.
func (r *Reconciler) gone(ctx context.Context, node string) (bool, error) {
	var list coordinationv1.LeaseList // the role has no get: with it, leases could become params of policies
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

// orphaned returns the sorted names of the nodes without a live agent.
func (r *Reconciler) orphaned(alive liveAgents) []string {
	var nodes []string
	for node := range r.Nodes.All() {
		if _, ok := alive[node.Name]; !ok && r.Clock.Since(node.CreationTimestamp.Time) > agentStartTime {
			nodes = append(nodes, node.Name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// count returns the sum of the counts that the agents report for a rule.
func (a liveAgents) count(rule *podrule.Rule) (total podrule.Tally) {
	for node, report := range a {
		if about, ok := report.Rules[rule.UID]; ok {
			total.AddFrom(node, &about.Tally)
		}
	}
	return total
}

// behind returns the number of agents that have not evaluated the current version of the rule.
func (a liveAgents) behind(rule *podrule.Rule) int {
	count := 0
	for _, report := range a {
		if about, ok := report.Rules[rule.UID]; !ok || about.Generation < rule.Generation {
			count++
		}
	}
	return count
}

// recheckInterval is the time to the next reconcile without an event: by then, an agent without a new lease is not live.
const recheckInterval = agents.Lasts + time.Second

// watcher decides which agents are live: those whose lease changed within agents.Lasts, by the clock of this process.
// It does not compare the clocks of two machines, except for a new lease that is older than maxClockSkew. The zero
// value is ready for use. It is safe for concurrent use.
type watcher struct {
	mu    sync.Mutex
	seen  map[string]sighting
	swept time.Time
}

// sighting is the last observed state of a lease.
type sighting struct {
	version string
	renewed time.Time
	at      time.Time
	report  agents.Report
}

// maxClockSkew is more than the expected difference of the clocks of two machines.
const maxClockSkew = 10 * agents.Lasts

// See records the lease. It returns the report of the agent, and whether the agent is live.
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

// sweep removes leases that have not changed for 2 * maxClockSkew.
func (w *watcher) sweep(now time.Time) {
	if now.Sub(w.swept) < maxClockSkew {
		return
	}
	w.swept = now
	maps.DeleteFunc(w.seen, func(_ string, s sighting) bool {
		return now.Sub(s.at) > 2*maxClockSkew && now.Sub(s.renewed) > 2*maxClockSkew
	})
}
