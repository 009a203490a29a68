// Package rulecache keeps the compiled rules for the controllers, and has what the controllers of both kinds of
// rules share: finalizers, status writes and their rate. Package noderule of the core decides what the rules mean.
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

// Shelf holds the rulebook of the rules that the reader knows now.
type Shelf struct {
	// reader answers from memory: it is asked on every look at a node.
	reader client.Reader

	mu    sync.Mutex
	store versioned
	book  *noderule.Rulebook
	// version is that of the store before the rules were listed of which the book is; empty if
	// it did not tell.
	version string
	made    int // books so far
}

// NewShelf makes a shelf over a cache. One that tells its version is listed only when that
// changed; any other reader is listed every time.
func NewShelf(cache client.Reader) *Shelf { return &Shelf{reader: cache} }

// Current is the rulebook of the rules as the cache has them at the time of the call. It is
// compiled anew only when a rule came, went or changed in what decisions need.
func (s *Shelf) Current(ctx context.Context) (*noderule.Rulebook, error) {
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
		return s.book, nil // somebody has listed later, and was faster
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

// newer reports whether one version of the store is newer than another, as far as they tell.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// known is the book if nothing was written to the cache since its rules were listed. Else it
// is nil, and version is what to remember the next book by: taken before listing, so what is
// written meanwhile makes another one.
func (s *Shelf) known(ctx context.Context) (book *noderule.Rulebook, version string) {
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

// isOf reports whether the book was made of just these rules.
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

// versioned is a store that tells the resource version of the last thing that was written to
// it, as one with the write itself: as long as the version is the same, so is what it holds.
// It is empty where client-go cannot tell (AtomicFIFO is turned off).
type versioned interface {
	LastStoreSyncResourceVersion() string
}

// storeOf is the store behind a cache's rules; nil if the reader is no cache, or does not
// show its store. A handler would not do instead: it is told of a change some time after the
// store has it, and a reconcile in between would see old rules and never look again.
func storeOf(ctx context.Context, reader client.Reader) versioned {
	informers, ok := reader.(cache.Informers)
	if !ok {
		return nil
	}
	informer, err := informers.GetInformer(ctx, &v1alpha1.NodeReadinessRule{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil // listing says the same
	}
	shared, ok := informer.(toolscache.SharedInformer)
	if !ok {
		return nil
	}
	return shared.GetStore()
}
