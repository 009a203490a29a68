package reporter_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	good    = check.Observation{Result: check.Healthy, Reason: "EndpointOK", Message: "answers 200"}
	bad     = check.Observation{Result: check.Unhealthy, Reason: "EndpointNotReady", Message: "answers 503"}
	refused = check.Observation{Result: check.Error, Reason: "EndpointConnectionError", Message: "connection refused"}

	before = check.Observation{Result: check.Healthy, Reason: "Before"}

	usual = reporter.Thresholds{Success: 1, Failure: 3, HoldDown: 15 * time.Second}
)

// step is a result at a time in seconds after noon, and the expected state.
type step struct {
	at     float64
	seen   check.Observation
	status string
	reason string
}

func TestTrack(t *testing.T) {
	for name, tc := range map[string]struct {
		thresholds reporter.Thresholds
		adopt      bool
		steps      []step
	}{
		"the first word is believed, whichever it is": {usual, false, []step{{0, bad, "False", "EndpointNotReady"}}},
		"the first success makes it True":             {usual, false, []step{{0, bad, "False", "EndpointNotReady"}, {0.5, good, "True", "EndpointOK"}}},
		"while it is False, other words for it are taken over": {usual, false, []step{
			{0, bad, "False", "EndpointNotReady"}, {0.5, refused, "False", "EndpointConnectionError"}}},
		"the restart of a component does not flip it": {usual, false, []step{
			{0, good, "True", "EndpointOK"}, {1, refused, "True", "EndpointOK"}, {2, refused, "True", "EndpointOK"}, {3, bad, "True", "EndpointOK"},
			{4, bad, "True", "EndpointOK"}, {6, bad, "True", "EndpointOK"}, {7, good, "True", "EndpointOK"}}},
		"a failure that goes on does": {usual, false, []step{
			{0, good, "True", "EndpointOK"}, {1, bad, "True", "EndpointOK"}, {6, bad, "True", "EndpointOK"}, {15.9, bad, "True", "EndpointOK"}, {16, refused, "False", "EndpointConnectionError"}}},
		"a few failures are not enough, however long": {usual, false, []step{
			{0, good, "True", "EndpointOK"}, {30, bad, "True", "EndpointOK"}, {60, bad, "True", "EndpointOK"}, {90, bad, "False", "EndpointNotReady"}}},
		"a success between failures restarts the count": {usual, false, []step{
			{0, good, "True", "EndpointOK"}, {10, bad, "True", "EndpointOK"}, {20, bad, "True", "EndpointOK"}, {24, good, "True", "EndpointOK"},
			{30, bad, "True", "EndpointOK"}, {40, bad, "True", "EndpointOK"}, {44, bad, "True", "EndpointOK"}, {45, bad, "False", "EndpointNotReady"}}},
		"several successes may be asked for": {reporter.Thresholds{Success: 3, Failure: 1}, false, []step{
			{0, bad, "False", "EndpointNotReady"}, {1, good, "False", "EndpointNotReady"}, {2, good, "False", "EndpointNotReady"}, {3, good, "True", "EndpointOK"},
			{4, bad, "False", "EndpointNotReady"}}},
		"nothing is said before there are enough": {reporter.Thresholds{Success: 2, Failure: 1}, false, []step{{0, good, "Unknown", ""}, {1, good, "True", "EndpointOK"}}},
		"what was True before a restart needs as much to become False": {usual, true, []step{
			{0, bad, "True", "Before"}, {5, bad, "True", "Before"}, {14, bad, "True", "Before"}, {15, bad, "False", "EndpointNotReady"}}},
	} {
		t.Run(name, func(t *testing.T) {
			track := reporter.NewTrack(tc.thresholds)
			if tc.adopt {
				track.Adopt(before)
			}
			for _, s := range tc.steps {
				track.Observe(s.seen, noon.Add(time.Duration(s.at*float64(time.Second))))
				if track.Status() != s.status || track.Basis().Reason != s.reason {
					t.Fatalf("at %v s: %s, %q, want %s, %q", s.at, track.Status(), track.Basis().Reason, s.status, s.reason)
				}
				if track.Decided() != (s.reason != "") {
					t.Errorf("at %v s: decided is %v", s.at, track.Decided())
				}
			}
		})
	}
}

// The result is the same whether the node is read before the first checks or after them.
func TestAnEarlierTrueStatusCanBeAdoptedLater(t *testing.T) {
	early, late := reporter.NewTrack(usual), reporter.NewTrack(usual)
	early.Adopt(before)
	for _, s := range []float64{0, 1, 2, 3} {
		at := noon.Add(time.Duration(s * float64(time.Second)))
		early.Observe(bad, at)
		late.Observe(bad, at)
	}
	late.Adopt(before)
	if early.Status() != late.Status() || early.Basis() != before || late.Basis() != before {
		t.Fatalf("learned early it is %s, learned late %s", early.Status(), late.Status())
	}
	for _, track := range []*reporter.Track{early, late} {
		if track.Observe(bad, noon.Add(15*time.Second)); track.Status() != nodestatus.False {
			t.Errorf("it is %s after the hold-down", track.Status())
		}
	}
}

func TestPause(t *testing.T) {
	const interval = 30 * time.Second
	track := reporter.NewTrack(usual)
	want := func(what string, pause time.Duration, interval, costly time.Duration) {
		t.Helper()
		if got := track.Pause(interval, costly); got != pause {
			t.Errorf("%s: the pause is %v, want %v", what, got, pause)
		}
	}
	want("at first", 500*time.Millisecond, interval, 0)
	want("with a short interval", 100*time.Millisecond, 100*time.Millisecond, 0)
	track.Observe(bad, noon)
	want("not ready", 500*time.Millisecond, interval, 0)
	want("not ready, and the check is costly", 4*time.Second, interval, time.Second)
	want("not ready, and the check is very costly", interval, interval, time.Minute)
	track.Observe(good, noon)
	want("ready", interval, interval, time.Second)
	track.Observe(bad, noon)
	want("ready, with a doubt", 5*time.Second, interval, 0)
	want("ready, with a doubt and a short interval", time.Second, time.Second, 0)
}

// For all sequences of results: a True condition becomes False only after the number of failures, and for
// the time, in the thresholds.
func TestEveryTransitionMeetsTheThresholds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thresholds := reporter.Thresholds{
			Success:  rapid.IntRange(1, 4).Draw(t, "success"),
			Failure:  rapid.IntRange(1, 4).Draw(t, "failure"),
			HoldDown: time.Duration(rapid.IntRange(0, 20).Draw(t, "holdDown")) * time.Second,
		}
		track := reporter.NewTrack(thresholds)
		now, failures, successes, failingSince := noon, 0, 0, noon
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "gap")) * time.Millisecond)
			before, healthy := track.Status(), rapid.Bool().Draw(t, "healthy")
			if healthy {
				successes, failures = successes+1, 0
				track.Observe(good, now)
			} else {
				if failures == 0 {
					failingSince = now
				}
				successes, failures = 0, failures+1
				track.Observe(bad, now)
			}
			after := track.Status()
			if before == nodestatus.True && after == nodestatus.False && (failures < thresholds.Failure || now.Sub(failingSince) < thresholds.HoldDown) {
				t.Fatalf("flipped after %d failures over %v", failures, now.Sub(failingSince))
			}
			if before != nodestatus.True && after == nodestatus.True && successes < thresholds.Success {
				t.Fatalf("ready after %d successes", successes)
			}
			if after == nodestatus.True && failures >= thresholds.Failure && now.Sub(failingSince) >= thresholds.HoldDown {
				t.Fatalf("still True after %d failures over %v", failures, now.Sub(failingSince))
			}
			if after != nodestatus.True && successes >= thresholds.Success {
				t.Fatalf("not True after %d successes", successes)
			}
		}
	})
}
