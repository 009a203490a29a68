package node

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/text"
)

// unlistedInterval is the least time between two reports about one node: an account that may write a node can
// write a new record every second.
const unlistedInterval = 10 * time.Minute

// unlistedRecords has the reported records of nodes that have unlisted records, or had some in the last
// unlistedInterval.
type unlistedRecords struct {
	mu     sync.Mutex
	byNode map[string]unlistedReport
}

type unlistedReport struct {
	// records is a hash of the last reported records, and at the time of the report.
	records uint64
	at      time.Time
	// now is true if the node has such records now.
	now bool
}

var unlistedSeed = maphash.MakeSeed()

// update stores the records of a node. It returns whether to report them now, and the change of the number of nodes with
// such records.
func (u *unlistedRecords) update(node *noderule.Node, keys []string, now time.Time) (news bool, change float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	report := u.byNode[node.Name]
	was := report.now
	if report.now = len(keys) > 0; !report.now {
		report.records = 0
	} else if records := hashOf(node, keys); records != report.records && (report.at.IsZero() || now.Sub(report.at) >= unlistedInterval) {
		news, report.records, report.at = true, records, now
	}
	switch {
	case !report.now && now.Sub(report.at) >= unlistedInterval:
		delete(u.byNode, node.Name)
	case u.byNode == nil:
		u.byNode = map[string]unlistedReport{node.Name: report}
	default:
		u.byNode[node.Name] = report
	}
	return news, one(report.now) - one(was)
}

func hashOf(node *noderule.Node, keys []string) uint64 {
	var records []string
	for _, key := range keys {
		records = append(records, key, node.Annotations[key])
	}
	return maphash.Comparable(unlistedSeed, fmt.Sprintf("%q", records))
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// forget removes a deleted node, and returns the change of the number of nodes.
func (u *unlistedRecords) forget(node string) (change float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was := u.byNode[node].now
	delete(u.byNode, node)
	return -one(was)
}

// reportUnlisted reports ownership records that no rule wrote, with the commands that remove them. Until the list of rule
// taints was read, it reports nothing.
func (r *Reconciler) reportUnlisted(ctx context.Context, d decision) {
	if r.Owners.Taints() == nil {
		return
	}
	keys := d.plan.Unlisted
	news, change := r.unlisted.update(d.Node, keys, r.Clock.Now())
	r.Metrics.unlistedNodes.Add(change)
	if !news {
		return
	}
	log.FromContext(ctx).Info("Ignored an ownership record that no rule wrote; its taint stays", "node", d.Node.Name, "records", len(keys), "first", keys[0])
	r.Events.Eventf(nodeObject(d.Node), nil, corev1.EventTypeWarning, v1alpha1.EventUnlistedRecord, v1alpha1.ActionKeepRecord,
		"%s", text.Cut(unlistedText(d.Node, keys), text.Event))
}

// unlistedText names the first record and the commands that remove it.
func unlistedText(node *noderule.Node, keys []string) string {
	text := fmt.Sprintf("Ownership record %s was not written by a rule of this cluster; the manager keeps the record and its taint. To remove the record: kubectl annotate node %s %s-", keys[0], node.Name, keys[0])
	if taint, ok := noderule.RecordTaint(node.Annotations[keys[0]]); ok {
		text += fmt.Sprintf("; to also remove the taint: kubectl taint node %s %s-", node.Name, taint)
	}
	if more := len(keys) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more records)", more)
	}
	return text
}
