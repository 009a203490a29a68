package noderule

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// A status is written once a second at most, and less often while nodes are being written: when it
// has waited for them for some time, however long ago the last one was written.
func TestStatusIsDeferredWhileNodesAreWritten(t *testing.T) {
	began := time.Unix(1e9, 0)
	clock, busy := testclock.NewFakePassiveClock(began), false
	r := &Reconciler{Clock: clock, Busy: func() bool { return busy }}
	if wait := r.untilNextWrite("a"); wait > 0 {
		t.Errorf("the first one waits %v", wait)
	}
	r.pace.Wrote("a", clock.Now())
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
		{long, true, busyRest},                // it begins to wait
		{long + time.Second, false, 0},        // nothing keeps it any more
		{long + busyInterval, true, busyRest}, // it begins to wait anew
		{long + 2*busyInterval, true, 0},
	} {
		clock.SetTime(began.Add(c.after))
		busy = c.busy
		if wait := r.untilNextWrite("a"); wait != c.want {
			t.Errorf("%v after the last one, busy: %t: waits %v, want %v", c.after, c.busy, wait, c.want)
		}
		if wait := r.untilNextWrite("a"); wait != c.want { // as after a conflict
			t.Errorf("%v after the last one, busy: %t: one that was not written waits %v, want %v", c.after, c.busy, wait, c.want)
		}
		if c.want == 0 { // as after a look that found nothing to write
			r.pace.Goes("a")
		}
	}
}

// A status that was written meanwhile, because the rule changed, or came again under the same name,
// has not waited yet.
func TestWrittenStatusRestartsTheDeferral(t *testing.T) {
	began := time.Unix(1e9, 0)
	for name, meanwhile := range map[string]func(*Reconciler){
		"changed":    func(*Reconciler) {},
		"came again": func(r *Reconciler) { r.pace.Forget("a") },
	} {
		clock := testclock.NewFakePassiveClock(began)
		r := &Reconciler{Clock: clock, Busy: func() bool { return true }}
		r.pace.Wrote("a", began.Add(-time.Minute))
		r.untilNextWrite("a")
		meanwhile(r)
		r.pace.Wrote("a", began)
		clock.SetTime(began.Add(busyInterval))
		if wait := r.untilNextWrite("a"); wait != busyRest {
			t.Errorf("%s: it waits %v, want %v", name, wait, busyRest)
		}
	}
}
