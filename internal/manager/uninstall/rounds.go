package uninstall

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/liveread"
)

const (
	// pageSize is how many nodes or pods are in memory at the same time.
	pageSize = 500
	// workers is how many of them are written at the same time.
	workers = 16

	// recheckDelay is the time from the last change to the next round: a client that restores what the
	// cleanup removes does so at once.
	recheckDelay = time.Second
	// maxCleanings is how often one object is cleaned. After that another client is restoring it.
	maxCleanings = 4
)

// objectKind is what rounds visit: nodes, or pods.
type objectKind struct {
	// name is what one of them is called.
	name    string
	newList func() client.ObjectList
	// stop is how to stop a client that restores what the cleanup removes.
	stop string
}

// visit cleans one object, and reports whether it changed it.
type visit func(context.Context, client.Object) (bool, error)

// restoredError is that another client restores what the cleanup removes.
type restoredError struct{ object, stop string }

func (e *restoredError) Error() string {
	return fmt.Sprintf("%s was cleaned %d times, and somebody puts it back: %s", e.object, maxCleanings, e.stop)
}

// untilClean visits all objects until a round finds nothing to do, some time after the last change:
// that nothing is left, and nothing comes back, is seen and not assumed.
func (r *run) untilClean(ctx context.Context, kind objectKind, done string, prepare func(context.Context) (visit, error)) error {
	most, total, cleaned := 0, 0, map[string]int{}
	err := retry(ctx, func(ctx context.Context) error {
		for {
			clean, err := prepare(ctx)
			if err != nil {
				return err
			}
			seen, changed, err := r.visitAll(ctx, kind, clean)
			most, total = max(most, seen), total+len(changed)
			if err != nil || len(changed) == 0 {
				return err
			}
			for _, name := range changed {
				if cleaned[name]++; cleaned[name] == maxCleanings {
					return &restoredError{object: kind.name + " " + name, stop: kind.stop}
				}
			}
			if !sleep(ctx, recheckDelay) {
				return ctx.Err()
			}
		}
	})
	log.Info(done, kind.name+"s", most, "changed", total, "complete", err == nil)
	return err
}

// visitAll visits all objects, some at the same time, page by page, and names those that it changed.
// An object that fails does not keep back others.
func (r *run) visitAll(ctx context.Context, kind objectKind, clean visit) (seen int, changed []string, err error) {
	var (
		mu     sync.Mutex
		failed failures
	)
	for page, err := range liveread.Pages(func(token string) (client.ObjectList, error) {
		page := kind.newList()
		return page, r.client.List(ctx, page, client.Limit(pageSize), client.Continue(token))
	}) {
		if err != nil {
			return seen, changed, fmt.Errorf("listing %ss: %w", kind.name, err)
		}
		var busy errgroup.Group
		busy.SetLimit(workers)
		err = meta.EachListItem(page, func(item runtime.Object) error {
			seen++
			busy.Go(func() error {
				obj := item.(client.Object)
				name := cache.MetaObjectToName(obj).String()
				did, err := clean(ctx, obj)
				mu.Lock()
				defer mu.Unlock()
				if did {
					changed = append(changed, name)
				}
				failed.add(name, err)
				return nil
			})
			return nil
		})
		if err := errors.Join(err, busy.Wait()); err != nil {
			return seen, changed, err
		}
	}
	return seen, changed, failed.err(kind.name + "s")
}

const (
	// A step that failed is tried again after firstPause, then twice as long each time, to
	// lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = 8 * time.Second

	// maxRefusals is how often a step may be rejected before it fails. An API server that has
	// just started rejects everything for a moment; after half a minute only a user can fix it.
	maxRefusals = 8
)

// retry does a step until it succeeds, is refused for good, another client restores what it removes, or time is
// up. The error is that of the last try that had time to find out what is wrong.
func retry(ctx context.Context, step func(context.Context) error) error {
	var last error
	refused := 0
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := step(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(last, err)
		}
		last = err
		if isRefusal(err) {
			refused++
		}
		var restored *restoredError
		if refused == maxRefusals || errors.As(err, &restored) || !sleep(ctx, pause) {
			return err
		}
		log.V(1).Info("Trying again", "reason", err.Error())
	}
}

// isRefusal says that the API server will answer the same until somebody changes a policy or a
// role.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// sleep waits, and reports whether there is time left.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
