package nodecache

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Roster is all nodes that a cache holds.
type Roster struct{ store cache.Store }

// New makes a roster of the store of an informer for nodes.
func New(store cache.Store) *Roster { return &Roster{store: store} }

// All are the nodes as the cache has them at the time of the call, in no order. Nobody may
// change them.
func (r *Roster) All() iter.Seq[*corev1.Node] {
	objs := r.store.List()
	return func(yield func(*corev1.Node) bool) {
		for _, obj := range objs {
			if !yield(obj.(*corev1.Node)) {
				return
			}
		}
	}
}
