package manager

import "testing"

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
	if alive() == 0 {
		t.Error("Go does not tell how much of the heap is alive")
	}
}
