package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/note"
	"github.com/readygate/readygate/internal/readiness"
)

// unlistedInterval is the least time between two reports about one node: an account that may write a node can
// write a new record every second.
const unlistedInterval = 10 * time.Minute

// unlistedRecords remembers which records were reported. It keeps one entry per node.
type unlistedRecords struct {
	mu     sync.Mutex
	byNode map[string]unlistedReport
}

type unlistedReport struct {
	count int
	first string
	at    time.Time
}

// news reports whether these records of the node are to be reported now.
func (u *unlistedRecords) news(node string, keys []string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	was, reported := u.byNode[node]
	if reported && (was.count == len(keys) && was.first == keys[0] || now.Sub(was.at) < unlistedInterval) {
		return false
	}
	if u.byNode == nil {
		u.byNode = map[string]unlistedReport{}
	}
	u.byNode[node] = unlistedReport{count: len(keys), first: strings.Clone(keys[0]), at: now}
	return true
}

func (u *unlistedRecords) forget(node string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byNode, node)
}

// reportUnlisted reports hold records that no rule wrote, with the commands that remove them. While
// the list is not known, nothing can be said about records.
func (r *Reconciler) reportUnlisted(ctx context.Context, d decision) {
	keys := d.plan.Unlisted
	if len(keys) == 0 || r.Owners.Taints() == nil || !r.unlisted.news(d.node.Name, keys, r.Clock.Now()) {
		return
	}
	r.Metrics.unlistedRecords.Inc()
	log.FromContext(ctx).Info("Left a hold record that no rule wrote, and its taint", "node", d.node.Name, "records", len(keys), "first", keys[0])
	r.Events.Eventf(nodeObject(d.node), nil, corev1.EventTypeWarning, v1alpha1.EventUnlistedRecord, v1alpha1.ActionKeepRecord,
		"%s", note.Cut(unlistedText(d.node, keys), note.Event))
}

// unlistedText names the first record and the commands that remove it.
func unlistedText(node *readiness.Node, keys []string) string {
	text := fmt.Sprintf("Hold record %s was not written by a rule of this cluster; it stays, and its taint too. Remove it with: kubectl annotate node %s %s-", keys[0], node.Name, keys[0])
	if taint, ok := readiness.RecordTaint(node.Annotations[keys[0]]); ok {
		text += fmt.Sprintf("; and, if the taint is not wanted: kubectl taint node %s %s-", node.Name, taint)
	}
	if more := len(keys) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more records)", more)
	}
	return text
}
