package turnstile

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoseContextEndsLeavesTheQueueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := New(1)
		first, err := gate.enter(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := gate.enter(ctx, node)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("left with %v", err)
		}
		if !gate.places.nobodyWaits() {
			t.Error("still in the queue")
		}
		gate.leave(first, served, 0)
		if _, err := gate.enter(ctx, node); !errors.Is(err, context.Canceled) {
			t.Errorf("let in with a context that has ended: %v", err)
		}
		if got := gate.places.underWay[node]; got != 0 {
			t.Errorf("%d places are taken", got)
		}
	})
}

func TestWhoMayEnterDoesNotWaitForThoseWhoMayNot(t *testing.T) {
	gate := New(8)
	for gate.queue(&pass{need: event}) {
		continue // until one has to wait
	}
	if !gate.queue(&pass{need: node}) {
		t.Error("a node waits while there are places for nodes")
	}
}

// Events ask this before they are sent.
func TestItIsKnownWhetherNodesAreWritten(t *testing.T) {
	gate := New(1)
	want := func(writes bool, when string) {
		t.Helper()
		if gate.WritesNodes() != writes {
			t.Errorf("%s: nodes are said to be written: %t", when, !writes)
		}
	}
	want(false, "at first")
	another, _ := gate.enter(t.Context(), other)
	want(false, "while something else is under way")
	waits := &pass{need: node}
	gate.queue(waits)
	want(true, "while one waits")
	gate.leave(another, served, 0)
	want(true, "while one is under way")
	gate.leave(waits, served, 0)
	want(false, "in the end")
}

// A context can end in the very moment in which its request is let in.
func TestAPlaceGivenTooLateGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := New(1)
		first, _ := gate.enter(t.Context(), node)
		late, next := &pass{need: node}, &pass{need: node}
		gate.queue(late)
		gate.queue(next)
		gate.leave(first, served, 0)
		gate.giveUp(late)
		<-next.let
		if got := gate.places.underWay[node]; got != 1 {
			t.Errorf("%d places are taken, want 1", got)
		}
	})
}

func TestAtTheEndOfAPauseSomebodyIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := New(4)
		for _, pause := range []time.Duration{time.Second, 3 * time.Second} {
			r, _ := gate.enter(t.Context(), node)
			gate.leave(r, refused, pause)
			before := time.Now()
			r, err := gate.enter(t.Context(), node)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(before); waited != pause {
				t.Errorf("let in after %v, want %v", waited, pause)
			}
			gate.leave(r, served, 0)
		}
	})
}

// Every request leaves, whatever happens to it and to others: were a wake-up lost, the test
// would not end. Time is virtual.
func TestEverybodyComesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, count = 6, 3000
		gate := New(most)
		var mu sync.Mutex
		var all sync.WaitGroup
		underWay, through, gaveUp := 0, 0, 0
		change := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			if underWay += by; underWay > most {
				t.Errorf("%d requests are under way", underWay)
			}
		}
		for range count {
			all.Go(func() {
				time.Sleep(rand.N(10 * time.Second))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second+rand.N(20*time.Second))
				defer cancel()
				r, err := gate.enter(ctx, need(rand.IntN(int(needs))))
				if err != nil {
					mu.Lock()
					gaveUp++
					mu.Unlock()
					return
				}
				change(1)
				time.Sleep(rand.N(20 * time.Millisecond))
				change(-1)
				o, pause := served, time.Duration(0)
				switch rand.IntN(100) {
				case 0:
					o, pause = refused, rand.N(time.Second)
				case 1:
					o = unknown
				}
				gate.leave(r, o, pause)
				mu.Lock()
				through++
				mu.Unlock()
			})
		}
		all.Wait()
		if through+gaveUp != count || through == 0 || gaveUp == 0 {
			t.Errorf("%d came through and %d gave up, of %d", through, gaveUp, count)
		}
		if !gate.places.nobodyWaits() || gate.places.underWay != [needs]int{} {
			t.Errorf("%v are under way in the end", gate.places.underWay)
		}
	})
}
