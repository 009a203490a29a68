package uninstall

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/liveread"
)

const (
	// page is how many nodes or pods are in memory at the same time.
	page = 500
	// workers is how many of them are written at the same time.
	workers = 16

	// quiet is how long they must stay clean: who puts things back does so at once.
	quiet = time.Second
	// patience is how often one may be cleaned before somebody must be at work against us.
	patience = 4
)

// things are what rounds are made of: nodes, or pods.
type things[T any] struct {
	// kind is what one of them is called.
	kind string
	// list lists one page of them.
	list func(ctx context.Context, token string) (*pageOf[T], error)
	name func(*T) string
	// stop is what to do about somebody who puts back what is taken off.
	stop string
}

// pageOf is one page of a list of things.
type pageOf[T any] struct {
	metav1.ListMeta
	items []T
}

// visit looks at one thing, and reports whether it changed it.
type visit[T any] func(context.Context, *T) (bool, error)

// putBackError says that what is taken off comes back.
type putBackError struct{ thing, stop string }

func (e *putBackError) Error() string {
	return fmt.Sprintf("%s was cleaned %d times, and somebody puts it back: %s", e.thing, patience, e.stop)
}

// untilClean visits all things until a round finds nothing to do, some time after the last change:
// that nothing is left, and nothing comes back, is seen and not assumed.
func untilClean[T any](ctx context.Context, all things[T], done string, prepare func(context.Context) (visit[T], error)) error {
	most, total, cleaned := 0, 0, map[string]int{}
	err := insist(ctx, func(ctx context.Context) error {
		for {
			look, err := prepare(ctx)
			if err != nil {
				return err
			}
			seen, changed, err := all.each(ctx, look)
			most, total = max(most, seen), total+len(changed)
			if err != nil || len(changed) == 0 {
				return err
			}
			for _, name := range changed {
				if cleaned[name]++; cleaned[name] == patience {
					return &putBackError{thing: all.kind + " " + name, stop: all.stop}
				}
			}
			if !sleep(ctx, quiet) {
				return ctx.Err()
			}
		}
	})
	log.Info(done, all.kind+"s", most, "changed", total, "complete", err == nil)
	return err
}

// each visits all things, some at the same time, page by page, and names those that it changed.
// What fails does not keep back others.
func (a things[T]) each(ctx context.Context, look visit[T]) (seen int, changed []string, err error) {
	var (
		mu     sync.Mutex
		failed failures
	)
	for page, err := range liveread.Pages(func(token string) (*pageOf[T], error) { return a.list(ctx, token) }) {
		if err != nil {
			return seen, changed, fmt.Errorf("listing %ss: %w", a.kind, err)
		}
		items := page.items
		seen += len(items)
		var busy sync.WaitGroup
		places := make(chan struct{}, workers)
		for i := range items {
			places <- struct{}{}
			busy.Go(func() {
				defer func() { <-places }()
				did, err := look(ctx, &items[i])
				mu.Lock()
				defer mu.Unlock()
				if did {
					changed = append(changed, a.name(&items[i]))
				}
				failed.add(a.name(&items[i]), err)
			})
		}
		busy.Wait()
	}
	return seen, changed, failed.err(a.kind + "s")
}

const (
	// A step that failed is tried again after firstPause, then twice as long each time, to
	// lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = 8 * time.Second

	// refusals is how often a step may be refused before it is given up. An API server that has
	// just started refuses everything for a moment; after half a minute only a user can mend it.
	refusals = 8
)

// insist does a step until it succeeds, is refused for good or fought, or time is up. The error is that
// of the last try that had time to find out what is wrong.
func insist(ctx context.Context, step func(context.Context) error) error {
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
		var fought *putBackError
		if refused == refusals || errors.As(err, &fought) || !sleep(ctx, pause) {
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
