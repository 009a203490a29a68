package manager

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestALargeHeapGrowsLess(t *testing.T) {
	for alive, want := range map[uint64]int{
		0:         mostPercent,
		1 << 20:   mostPercent,
		13 << 20:  300,
		26 << 20:  100,
		39 << 20:  leastPercent,
		52 << 20:  leastPercent,
		500 << 20: leastPercent,
	} {
		if got := percentFor(alive); got != want {
			t.Errorf("%d MiB alive: %d %%, want %d %%", alive>>20, got, want)
		}
	}
}

func TestWhatIsAliveIsKnown(t *testing.T) {
	runtime.GC() // before the first collection nothing is known
	if alive() == 0 {
		t.Error("Go does not tell how much of the heap is alive")
	}
}

func TestEachCollectionIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	collected := collections(ctx)
	for i := range 3 {
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(30 * time.Second):
			t.Fatalf("collection %d was not told", i+1)
		}
	}
	stop()
	for range 3 {
		runtime.GC() // the first may still be told
	}
	select {
	case <-collected:
	default:
	}
	runtime.GC()
	select {
	case <-collected:
		t.Error("a collection was told after the end")
	case <-time.After(100 * time.Millisecond):
	}
}
