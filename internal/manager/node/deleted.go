package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// maxDeleted is the maximum number of UIDs of deleted rules. Any client that may write a node can invent UIDs.
const maxDeleted = 4096

// deletedRules has the UIDs of rules that do not exist, so that records of one rule on many nodes cost one LIST. The API
// server never reuses a UID: a rule that did not exist after one of its records was read will never exist.
type deletedRules struct {
	list liveread.Shared[map[types.UID]string]

	mu   sync.Mutex
	uids map[types.UID]struct{}
}

// unconfirmed returns the rules that may exist.
func (d *deletedRules) unconfirmed(rules []types.UID) []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(rules), func(uid types.UID) bool {
		_, ok := d.uids[uid]
		return ok
	})
}

func (d *deletedRules) add(rules []types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil || len(d.uids)+len(rules) > maxDeleted {
		d.uids = map[types.UID]struct{}{}
	}
	for _, uid := range rules {
		d.uids[uid] = struct{}{}
	}
}

// confirmGone returns an error if one of the rules exists. The cache does not have them, but it can be stale, and the
// sweep cannot be undone. Records of the rules were read before the given time.
func (r *Reconciler) confirmGone(ctx context.Context, rules []types.UID, read time.Time) error {
	rules = r.deleted.unconfirmed(rules)
	if len(rules) == 0 {
		return nil
	}
	existing, err := r.deleted.list.Read(read, r.Clock.Now, func() (map[types.UID]string, error) { return r.existingRules(ctx) })
	if err != nil {
		return err
	}
	for _, uid := range rules {
		if name, ok := existing[uid]; ok {
			return fmt.Errorf("rule %s exists, but the cache does not have it yet", name)
		}
	}
	r.deleted.add(rules)
	return nil
}

// existingRules returns the names of all rules by UID, from the API server.
func (r *Reconciler) existingRules(ctx context.Context) (map[types.UID]string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("NodeReadinessRuleList"))
	if err := rulecache.ListLive(ctx, r.Live, &list); err != nil {
		return nil, err
	}
	names := make(map[types.UID]string, len(list.Items))
	for i := range list.Items {
		names[list.Items[i].UID] = list.Items[i].Name
	}
	return names, nil
}
