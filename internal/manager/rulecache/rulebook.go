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
func (s *Cache) Current(ctx context.Context) (*noderule.Rulebook, error) {
	book, version := s.known(ctx)
	if book != nil {
		return book, nil
	}
	var list v1alpha1.NodeReadinessRuleList
	if err := s.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing rules: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.book != nil && newer(s.version, version) {
		return s.book, nil // a concurrent call has listed later
	}
	s.version = version
	if s.book == nil || !isOf(s.book, list.Items) {
		objs := make([]*v1alpha1.NodeReadinessRule, len(list.Items))
		for i := range list.Items {
			objs[i] = list.Items[i].DeepCopy()
		}
		s.made++
		s.book = noderule.NewRulebook(objs)
		s.book.Number = s.made
	}
	return s.book, nil
}

// newer reports whether version a of the store is newer than b. It returns false if they cannot be compared.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// known returns the book if nothing was written to the store since its rules were listed. Otherwise book is nil, and
// version is that of the next book: it is read before the rules are listed, so that a write meanwhile invalidates that
// book.
func (s *Cache) known(ctx context.Context) (book *noderule.Rulebook, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		s.store = storeOf(ctx, s.reader)
	}
	if s.store != nil {
		version = s.store.LastStoreSyncResourceVersion()
	}
	if version != "" && version == s.version {
		book = s.book
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
