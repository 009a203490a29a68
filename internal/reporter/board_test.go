package reporter

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// These tests use the board like check loops and the writer do; it is not exported.

var (
	boardNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	booted    = boardNoon.Add(-time.Hour)
	boardGood = check.Observation{Result: check.Healthy, Reason: "OK", Message: "fine"}
	boardBad  = check.Observation{Result: check.Unhealthy, Reason: "Bad", Message: "503"}
	boardTask = &task{conditionType: "example.com/A", text: "a", interval: time.Minute, thresholds: Thresholds{Success: 1, Failure: 3, HoldDown: 15 * time.Second}}
)

func newTestBoard() *board {
	b := newBoard(booted)
	b.put(boardTask)
	return b
}

func at(seconds int) time.Time { return boardNoon.Add(time.Duration(seconds) * time.Second) }

func nodeWith(uid, status string, heartbeat, transition time.Time) nodestatus.Node {
	node := nodestatus.Node{Metadata: nodestatus.Metadata{UID: uid}}
	if status != "" {
		node.Status.Conditions = []nodestatus.Condition{{Type: "example.com/A", Status: status, LastHeartbeatTime: heartbeat, LastTransitionTime: transition}}
	}
	return node
}

// only returns the single condition to write.
func only(t *testing.T, b *board) (nodestatus.Condition, urgency) {
	t.Helper()
	all, urgency := b.conditions(at(100))
	if len(all) != 1 {
		t.Fatalf("to be written: %+v", all)
	}
	return all[0], urgency
}

func TestATransitionKeepsItsTimeOverARestart(t *testing.T) {
	lastWeek := boardNoon.Add(-7 * 24 * time.Hour)
	for name, tc := range map[string]struct {
		observe []check.Observation
		node    nodestatus.Node
		status  string
		since   time.Time
	}{
		"the same status goes on":               {[]check.Observation{boardGood}, nodeWith("u", "True", boardNoon, lastWeek), "True", lastWeek},
		"another status begins now":             {[]check.Observation{boardGood}, nodeWith("u", "False", boardNoon, lastWeek), "True", at(0)},
		"there was none before":                 {[]check.Observation{boardBad}, nodeWith("u", "", boardNoon, lastWeek), "False", at(0)},
		"it was True before the last boot only": {[]check.Observation{boardBad}, nodeWith("u", "True", booted.Add(-time.Minute), lastWeek), "False", at(0)},
		"Unknown before":                        {[]check.Observation{boardBad}, nodeWith("u", "Unknown", boardNoon, lastWeek), "False", at(0)},
	} {
		for _, learnFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				b := newTestBoard()
				if learnFirst {
					b.learn(tc.node, at(0))
				}
				for _, observation := range tc.observe {
					b.observe(boardTask, observation, 0, at(0))
				}
				if !learnFirst {
					b.learn(tc.node, at(1))
				}
				got, urgency := only(t, b)
				if got.Status != tc.status || !got.LastTransitionTime.Equal(tc.since) || urgency != change {
					t.Errorf("learned first: %v: %+v, want %s since %v", learnFirst, got, tc.status, tc.since)
				}
			})
		}
	}
}

// A True condition that fails stays True with its message until the thresholds are reached.
func TestARestartedReporterAppliesTheThresholds(t *testing.T) {
	b := newTestBoard()
	b.observe(boardTask, boardBad, 0, at(0))
	node := nodeWith("u", "True", boardNoon, booted)
	node.Status.Conditions[0].Reason = "OK"
	b.learn(node, at(1))
	for i := range 3 {
		b.observe(boardTask, boardBad, 0, at(5*i))
		if got, _ := only(t, b); got.Status != nodestatus.True || got.Reason != "OK" || !got.LastTransitionTime.Equal(booted) {
			t.Fatalf("after %d s it writes %+v", 5*i, got)
		}
	}
	b.observe(boardTask, boardBad, 0, at(15))
	if got, _ := only(t, b); got.Status != nodestatus.False || !got.LastTransitionTime.Equal(at(15)) {
		t.Errorf("it writes %+v", got)
	}
}

// A check that is removed and added again starts from the last written condition.
func TestAReaddedCheckStartsFromWhatWasWritten(t *testing.T) {
	b := newTestBoard()
	b.learn(nodeWith("u", "False", boardNoon, booted), at(0))
	b.observe(boardTask, boardGood, 0, at(1))
	all, _ := b.conditions(at(1))
	b.wrote(all)
	b.remove("example.com/A")
	b.put(boardTask)
	b.observe(boardTask, boardBad, 0, at(60))
	if got, _ := only(t, b); got.Status != nodestatus.True || !got.LastTransitionTime.Equal(at(1)) {
		t.Errorf("it writes %+v", got)
	}
}

func TestARejectedConditionIsLeftOutOfWrites(t *testing.T) {
	b := newTestBoard()
	b.learn(nodeWith("u", "", boardNoon, booted), at(0))
	b.observe(boardTask, boardGood, 0, at(1))
	b.reject("example.com/A", at(61))
	if all, _ := b.conditions(at(60)); len(all) != 0 || !b.anyRejected(at(60)) {
		t.Errorf("it writes %+v", all)
	}
	if all, _ := b.conditions(at(61)); len(all) != 1 || b.anyRejected(at(61)) {
		t.Errorf("after a while it writes %+v", all)
	}
}

func TestHowUrgentAWriteIs(t *testing.T) {
	b := newTestBoard()
	want := func(what string, want urgency) {
		t.Helper()
		all, got := b.conditions(at(0))
		if got != want {
			t.Errorf("%s: urgency is %d, want %d", what, got, want)
		}
		b.wrote(all)
	}
	want("before the first check", nothing)
	b.observe(boardTask, boardBad, 0, at(0))
	want("the first status", change)
	b.observe(boardTask, boardBad, 0, at(1))
	want("the same again", nothing)
	b.observe(boardTask, check.Observation{Result: check.Error, Reason: "Refused"}, 0, at(2))
	want("another message", messageOnly)
	b.observe(boardTask, boardGood, 0, at(3))
	want("a change", change)
}

// A recreated node of the same name has none of the earlier conditions.
func TestConditionsOfARecreatedNodeStartAgain(t *testing.T) {
	b := newTestBoard()
	b.learn(nodeWith("one", "True", boardNoon, booted), at(0))
	b.observe(boardTask, boardGood, 0, at(1))
	all, _ := b.conditions(at(1))
	b.wrote(all)
	b.learn(nodeWith("two", "", boardNoon, booted), at(50))
	if got, urgency := only(t, b); urgency != change || !got.LastTransitionTime.Equal(at(50)) || b.uid() != "two" {
		t.Errorf("on the new node it writes %+v, with urgency %d", got, urgency)
	}
}

// A replaced check keeps its status, and a late result of the old check does not count for the new one.
func TestAReplacedCheckKeepsItsStatus(t *testing.T) {
	b := newTestBoard()
	b.learn(nodeWith("u", "", boardNoon, booted), at(0))
	b.observe(boardTask, boardGood, 0, at(1))
	all, _ := b.conditions(at(1))
	b.wrote(all)
	second := *boardTask
	second.text = "b"
	b.put(&second)
	b.observe(boardTask, boardBad, 0, at(2))
	b.observe(boardTask, boardBad, 0, at(20))
	b.observe(boardTask, boardBad, 0, at(40))
	if got, _ := only(t, b); got.Status != nodestatus.True {
		t.Fatalf("it is %s", got.Status)
	}
	b.observe(&second, boardGood, 0, at(41))
	if got, urgency := only(t, b); got.Status != nodestatus.True || urgency != nothing || !got.LastTransitionTime.Equal(at(1)) {
		t.Errorf("it writes %+v, with urgency %d", got, urgency)
	}
	b.remove("example.com/A")
	if all, _ := b.conditions(at(42)); len(all) != 0 {
		t.Errorf("removed, it writes %+v", all)
	}
}
