package rulecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/rulecache"
)

// current returns an empty book after an error, because other goroutines than that of the test call it.
func current(t testing.TB, cached *rulecache.Cache) *noderule.Rulebook {
	book, err := cached.Current(context.Background())
	if err != nil {
		t.Error(err)
		return noderule.NewRulebook(nil)
	}
	return book
}

// The rulebook is read for each node event, so a read must cost nothing while no rule changes.
func TestAnUnchangedCacheIsNotListedAgain(t *testing.T) {
	rulesCache, _ := startCache(t, rules(100)...)
	listed := &counted{Cache: rulesCache}
	cached := rulecache.New(listed)
	book := current(t, cached)
	if len(book.Rules()) != 100 {
		t.Fatalf("%d rules, want 100", len(book.Rules()))
	}
	allocs := testing.AllocsPerRun(100, func() {
		if current(t, cached) != book {
			t.Error("a new rulebook, although no rule changed")
		}
	})
	if allocs > 0 || listed.lists.Load() != 1 {
		t.Errorf("%v allocations per read, %d lists; want no allocation and one list", allocs, listed.lists.Load())
	}
}

// change creates, updates or deletes one of a few rules.
func change(from source, generation int64) {
	obj := rule(fmt.Sprintf("rule-%d", rand.IntN(5)))
	obj.Generation = generation
	if rand.IntN(3) == 0 {
		from.Delete(obj)
	} else {
		from.Modify(obj)
	}
}

// An event handler finds the change of its event in the rulebook: otherwise a controller would decide with stale rules
// and not be requeued.
func TestTheBookIsAsFreshAsTheCache(t *testing.T) {
	rulesCache, from := startCache(t)
	cached := rulecache.New(rulesCache)
	seen, done := make(chan error, 1000), make(chan struct{})
	check := func(obj any, deleted bool) {
		event := obj.(*v1alpha1.NodeReadinessRule)
		switch known := current(t, cached).Rule(event.UID); {
		case deleted && known != nil && known.Generation <= event.Generation:
			seen <- fmt.Errorf("%s is deleted, but still in the rulebook", event.Name)
		case !deleted && known != nil && known.Generation < event.Generation:
			seen <- fmt.Errorf("%s has generation %d, but %d in the rulebook", event.Name, event.Generation, known.Generation)
		case !deleted && event.Name == "last":
			if known == nil {
				seen <- errors.New("the last rule is not in the book")
			}
			close(done)
		}
	}
	if _, err := informer(t, rulesCache).AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { check(obj, false) },
		UpdateFunc: func(_, obj any) { check(obj, false) },
		DeleteFunc: func(obj any) { check(obj, true) },
	}); err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	for range 2 { // concurrent reads must not restore an older rulebook
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					current(t, cached)
				}
			}
		})
	}
	for i := range 500 {
		change(from, int64(i+2))
	}
	from.Add(rule("last"))
	others.Wait()
	close(seen)
	for err := range seen {
		t.Error(err)
	}
}

func TestRuleWrittenDuringTheListIsNotMissed(t *testing.T) {
	rulesCache, from := startCache(t, rule("a"))
	added := make(chan struct{}, 2)
	if _, err := informer(t, rulesCache).AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added <- struct{}{} },
	}); err != nil {
		t.Fatal(err)
	}
	<-added
	cached := rulecache.New(&counted{Cache: rulesCache, then: sync.OnceFunc(func() {
		from.Add(rule("b"))
		<-added
	})})
	for _, want := range []int{1, 2} {
		if book := current(t, cached); len(book.Rules()) != want {
			t.Errorf("%d rules, want %d", len(book.Rules()), want)
		}
	}
}

// A cache that lost its watch finds deletions in a new list, without events.
func TestRulesDeletedWhileTheWatchWasLostAreRemoved(t *testing.T) {
	gone := rules(3)
	rulesCache, from := startCache(t, gone...)
	cached := rulecache.New(rulesCache)
	if book := current(t, cached); len(book.Rules()) != 3 {
		t.Fatalf("%d rules, want 3", len(book.Rules()))
	}
	deleted := make(chan struct{}, len(gone))
	if _, err := informer(t, rulesCache).AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		DeleteFunc: func(any) { deleted <- struct{}{} },
	}); err != nil {
		t.Fatal(err)
	}
	for _, obj := range gone {
		from.DeleteDropWatch(obj.DeepCopy())
	}
	from.ResetWatch()
	<-deleted
	if book := current(t, cached); len(book.Rules()) != 0 {
		t.Errorf("%d rules, want none", len(book.Rules()))
	}
}

// A status is written once per second. It must not create a new rulebook.
func TestStatusUpdateMakesNoNewRulebook(t *testing.T) {
	rulesCache, from := startCache(t, rule("net"))
	cached := rulecache.New(rulesCache)
	before := current(t, cached)
	updated := make(chan struct{}, 1)
	if _, err := informer(t, rulesCache).AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(any, any) { updated <- struct{}{} },
	}); err != nil {
		t.Fatal(err)
	}
	written := rule("net")
	written.Status.TakenOverAt = new(metav1.Now())
	from.Modify(written)
	<-updated
	if current(t, cached) != before {
		t.Error("compiled again, although no decision depends on the change")
	}
}

// reader is a client without a cache, and so without a version.
type reader struct {
	client.Reader
	items []v1alpha1.NodeReadinessRule
	err   error
}

func (r *reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.NodeReadinessRuleList).Items = slices.Clone(r.items)
	return r.err
}

func TestAReaderThatIsNoCacheIsListedEveryTime(t *testing.T) {
	from := &reader{items: []v1alpha1.NodeReadinessRule{*rule("a")}}
	cached := rulecache.New(from)
	before := current(t, cached)
	if current(t, cached) != before {
		t.Error("compiled again, although no rule changed")
	}
	from.items = append(from.items, *rule("b"))
	if book := current(t, cached); len(book.Rules()) != 2 {
		t.Errorf("%d rules, want 2", len(book.Rules()))
	}
	from.err = errors.New("no answer")
	if _, err := cached.Current(t.Context()); !errors.Is(err, from.err) {
		t.Errorf("got %v, want the error of the reader", err)
	}
}
