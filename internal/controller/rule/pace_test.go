package rule

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// A status is written once a second at most, and less often while nodes are being written.
func TestAStatusGivesWayToNodes(t *testing.T) {
	clock, busy := testclock.NewFakePassiveClock(time.Unix(1e9, 0)), false
	r := &Reconciler{Clock: clock, Busy: func() bool { return busy }}
	if wait := r.untilNextWrite("a"); wait > 0 {
		t.Errorf("the first one waits %v", wait)
	}
	r.pace.Wrote("a", clock.Now())
	for _, c := range []struct {
		after time.Duration
		busy  bool
		want  time.Duration
	}{
		{0, false, statusInterval},
		{0, true, statusInterval},
		{400 * time.Millisecond, true, 600 * time.Millisecond},
		{statusInterval, false, 0},
		{statusInterval, true, busyRest},
		{busyInterval - 1, true, busyRest},
		{busyInterval, true, 0},
	} {
		clock.SetTime(time.Unix(1e9, 0).Add(c.after))
		busy = c.busy
		if wait := max(0, r.untilNextWrite("a")); wait != c.want {
			t.Errorf("%v after the last one, busy: %t: waits %v, want %v", c.after, c.busy, wait, c.want)
		}
	}
}
