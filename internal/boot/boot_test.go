package boot

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for stat, want := range map[string]time.Time{
		"cpu 1 2 3\nbtime 1000000000\nprocesses 5\n": time.Unix(1e9, 0),
		"cpu 1 2 3\n":     {},
		"btime soon\n":    {},
		"notbtime 1000\n": {},
	} {
		if got := parse(stat); !got.Equal(want) {
			t.Errorf("%q is parsed as %v, want %v", stat, got, want)
		}
	}
}
