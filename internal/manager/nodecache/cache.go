package nodecache

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Cache has all nodes of an informer.
type Cache struct{ store cache.Store }

// New returns the nodes in the store of an informer.
func New(store cache.Store) *Cache { return &Cache{store: store} }

// All returns the nodes of the cache at the time of the call, in no order. They are shared with the cache and read-only.
func (c *Cache) All() iter.Seq[*corev1.Node] {
	objs := c.store.List()
	return func(yield func(*corev1.Node) bool) {
		for _, obj := range objs {
			if !yield(obj.(*corev1.Node)) {
				return
			}
		}
	}
}
