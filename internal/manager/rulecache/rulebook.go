// Package rulecache caches the compiled rules, and has the code that the controllers of both kinds of rules share:
// finalizers, status writes and their rate. It evaluates no rules: the core package noderule does.
package rulecache

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Cache caches the rulebook of the current rules of a reader. It is safe for concurrent use.
type Cache struct {
	// reader reads from memory: every reconcile of a node reads it.
	reader client.Reader

	mu    sync.Mutex
	store versioned
	book  *noderule.Rulebook
	// version is the version of the store before the rules of the book were listed; empty if it was not known.
	version string
	made    int // number of books so far
}

// New returns a cache of the rules of a reader. A reader whose store has a version is listed only after the version has
// changed; any other reader is listed at each call.
func New(reader client.Reader) *Cache { return &Cache{reader: reader} }

// Current returns the rulebook of the rules in the cache at the time of the call. It compiles the rules again only if
// one was added or removed, or changed in a way that decisions depend on.
func (c *Cache) Current(ctx context.Context) (*noderule.Rulebook, error) {
	book, version := c.known(ctx)
	if book != nil {
		return book, nil
	}
	var list v1alpha1.NodeReadinessRuleList
	if err := c.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing rules: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.book != nil && newer(c.version, version) {
		return c.book, nil // a concurrent call has listed later
	}
	c.version = version
	if c.book == nil || !isOf(c.book, list.Items) {
		objs := make([]*v1alpha1.NodeReadinessRule, len(list.Items))
		for i := range list.Items {
			objs[i] = list.Items[i].DeepCopy()
		}
		c.made++
		c.book = noderule.NewRulebook(objs)
		c.book.Number = c.made
	}
	return c.book, nil
}

// newer reports whether version a of the store is newer than b. It returns false if they cannot be compared.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// known returns the book if nothing was written to the store since its rules were listed. Otherwise book is nil, and
// version is that of the next book: it is read before the rules are listed, so that a write meanwhile invalidates that
// book.
func (c *Cache) known(ctx context.Context) (book *noderule.Rulebook, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		c.store = storeOf(ctx, c.reader)
	}
	if c.store != nil {
		version = c.store.LastStoreSyncResourceVersion()
	}
	if version != "" && version == c.version {
		book = c.book
	}
	return book, version
}

// isOf reports whether the book was compiled from exactly these rules.
func isOf(book *noderule.Rulebook, rules []v1alpha1.NodeReadinessRule) bool {
	if len(book.Rules()) != len(rules) {
		return false
	}
	for i := range rules {
		if known := book.Rule(rules[i].UID); known == nil || !known.IsOf(&rules[i]) {
			return false
		}
	}
	return true
}

// versioned is a store with the resource version of its last write. Version and content change together: while the
// version is the same, the content is, too. The version is empty if client-go does not set it (AtomicFIFO is disabled).
type versioned interface {
	LastStoreSyncResourceVersion() string
}

// storeOf returns the store of the rules of a cache; nil if the reader is no cache or has no accessible store. An event
// handler cannot replace it: the handler is called some time after the change of the store, and a reconcile in between
// would use stale rules without being requeued.
func storeOf(ctx context.Context, reader client.Reader) versioned {
	informers, ok := reader.(cache.Informers)
	if !ok {
		return nil
	}
	informer, err := informers.GetInformer(ctx, &v1alpha1.NodeReadinessRule{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil // List returns the same error
	}
	shared, ok := informer.(toolscache.SharedInformer)
	if !ok {
		return nil
	}
	return shared.GetStore()
}
