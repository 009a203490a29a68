package noderule

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// A status is written at most once per second. While nodes are written, it is deferred for at most busyInterval, however
// long ago the last status was written.
func TestStatusIsDeferredWhileNodesAreWritten(t *testing.T) {
	began := time.Unix(1e9, 0)
	clock, busy := testclock.NewFakePassiveClock(began), false
	r := &Reconciler{Clock: clock, Busy: func() bool { return busy }}
	if wait := r.untilNextWrite("a"); wait > 0 {
		t.Errorf("the first status write waits %v", wait)
	}
	r.writes.Wrote("a", clock.Now())
	const long = time.Hour
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
		{statusInterval + busyInterval - 1, true, busyRest},
		{statusInterval + busyInterval, true, 0},
		{long, true, busyRest},                // the deferral begins
		{long + time.Second, false, 0},        // nodes are not written anymore
		{long + busyInterval, true, busyRest}, // a new deferral begins
		{long + 2*busyInterval, true, 0},
	} {
		clock.SetTime(began.Add(c.after))
		busy = c.busy
		if wait := r.untilNextWrite("a"); wait != c.want {
			t.Errorf("%v after the last write, busy: %t: waits %v, want %v", c.after, c.busy, wait, c.want)
		}
		if wait := r.untilNextWrite("a"); wait != c.want { // as after a conflict
			t.Errorf("%v after the last write, busy: %t: after a failed write it waits %v, want %v", c.after, c.busy, wait, c.want)
		}
		if c.want == 0 { // as after a reconcile without a write
			r.writes.UpToDate("a")
		}
	}
}

// A status that was written meanwhile, because the rule changed or was recreated under the same name, is deferred from
// the start.
func TestWrittenStatusRestartsTheDeferral(t *testing.T) {
	began := time.Unix(1e9, 0)
	for name, meanwhile := range map[string]func(*Reconciler){
		"changed":   func(*Reconciler) {},
		"recreated": func(r *Reconciler) { r.writes.Forget("a") },
	} {
		clock := testclock.NewFakePassiveClock(began)
		r := &Reconciler{Clock: clock, Busy: func() bool { return true }}
		r.writes.Wrote("a", began.Add(-time.Minute))
		r.untilNextWrite("a")
		meanwhile(r)
		r.writes.Wrote("a", began)
		clock.SetTime(began.Add(busyInterval))
		if wait := r.untilNextWrite("a"); wait != busyRest {
			t.Errorf("%s: it waits %v, want %v", name, wait, busyRest)
		}
	}
}
