package noderule

import (
	"context"
	"errors"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/core/noderule"
)

// listRequest is the request that reconciles the list of rule taints. No rule has an empty name.
var listRequest = request("")

// listInterval is the minimum time between two checks of entries of deleted rules. A check sends no request.
const listInterval = time.Second

// refreshInterval is the time between two checks while the list has no such entry. The list decides when to read
// the ConfigMap again.
const refreshInterval = 5 * time.Minute

// tidyList removes entries of deleted rules from the list of rule taints, once no policy has named the rule and no node
// has carried its record for ListRest. A stale cache does no harm: a rule that exists is entered again before a policy
// or a node names it.
func (r *Reconciler) tidyList(ctx context.Context) (reconcile.Result, error) {
	book, err := r.Rules.Current(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := errors.Join(r.Owners.Refresh(ctx), r.Owners.Enter(ctx, book)); err != nil {
		return reconcile.Result{}, err
	}
	if r.Owners.Taints() == nil {
		retry, _ := r.Owners.Problem()
		return reconcile.Result{RequeueAfter: max(retry, listInterval)}, nil
	}
	nodes, err := r.nodes(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	again := reconcile.Result{RequeueAfter: max(listInterval, r.ListRest/4)}
	idle, done, waits := map[types.UID]time.Time{}, []types.UID(nil), false
	for uid, taint := range r.Owners.Taints() {
		if book.Rule(uid) != nil {
			continue
		}
		waits = true
		if gone, _ := r.Coverage.Gone(uid); !gone || anyRecord(nodes, uid, taint) {
			continue
		}
		since, known := r.idle[uid]
		if !known {
			since = r.Clock.Now()
		}
		idle[uid] = since
		if r.Clock.Since(since) >= r.ListRest {
			done = append(done, uid)
		}
	}
	r.idle = idle
	if !waits {
		return reconcile.Result{RequeueAfter: refreshInterval}, nil
	}
	if len(done) > 0 {
		return again, r.Owners.Remove(ctx, done)
	}
	return again, nil
}

func anyRecord(nodes iter.Seq[*noderule.Node], rule types.UID, taint noderule.TaintID) bool {
	for node := range nodes {
		if node.HasRecord(rule, taint) {
			return true
		}
	}
	return false
}
