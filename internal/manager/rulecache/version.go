package rulecache

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

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
