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
	// pageSize is the number of nodes or pods per LIST request.
	pageSize = 500
	// workers is the maximum number of concurrent writes.
	workers = 16

	// recheckDelay is the time from the last change to the next round: a client that restores what the
	// cleanup removes does so at once.
	recheckDelay = time.Second
	// maxCleanings is how often one object is cleaned before the cleanup fails: another client restores it then.
	maxCleanings = 4
)

// objectKind is a kind of object that rounds visit: nodes or pods.
type objectKind struct {
	// name is the name of the kind in messages.
	name    string
	newList func() client.ObjectList
	// stop is how to stop the client that restores what the cleanup removes.
	stop string
}

// visit cleans one object, and reports whether it changed it.
type visit func(context.Context, client.Object) (bool, error)

// restoredError is the error if another client restores what the cleanup removes.
type restoredError struct{ object, stop string }

func (e *restoredError) Error() string {
	return fmt.Sprintf("%s was cleaned %d times, and another client restores what was removed: %s", e.object, maxCleanings, e.stop)
}

// untilClean visits all objects until a round after the last change finds nothing to do. So it observes that nothing is
// left and that no client restores it.
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

// visitAll visits all objects concurrently, page by page, and returns the names of those that it changed. The failure
// of one object does not stop the others.
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
	// A failed step is retried after firstPause, then after twice as long each time, up to lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = 8 * time.Second

	// maxRefusals is how often a step may be rejected before it fails. An API server that has just started rejects all
	// requests until it has read the roles; a rejection after half a minute needs a user.
	maxRefusals = 8
)

// retry runs a step until it succeeds, is rejected maxRefusals times, another client restores what it removes, or the
// context ends. It returns the error of the last attempt; if the context ended during that attempt, also the error
// before.
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
		log.V(1).Info("Retrying", "reason", err.Error())
	}
}

// isRefusal reports whether the API server will return the same error until a policy or a role changes.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// sleep waits, and returns false if the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
