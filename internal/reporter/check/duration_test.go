package check_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/readygate/readygate/internal/reporter/check"
)

func TestADurationIsWrittenWithItsUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`"1m30s"`: 90 * time.Second,
		`"90s"`:   90 * time.Second,
		`"500ms"`: 500 * time.Millisecond,
		`"0s"`:    0,
		`"8760h"`: check.MaxDuration,
	} {
		var got check.Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Duration != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
		if err := got.AtLeast(0, "field", "30s"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if text, err := json.Marshal(check.For(90 * time.Second)); err != nil || string(text) != `"1m30s"` {
		t.Errorf("90s is written as %s, %v", text, err)
	}
	var absent *check.Duration
	if err := absent.AtLeast(time.Hour, "field", "2h"); err != nil {
		t.Errorf("one that is absent is wrong: %v", err)
	}
}

func TestAnInvalidDurationIsReportedWithItsField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`30`:       "patience is 30, must be a duration in h, m, s or ms, e.g. 30s",
		`true`:     "patience is true, must be a duration in h, m, s or ms, e.g. 30s",
		`{"s":30}`: `patience is {"s":30}, must be a duration in h, m, s or ms, e.g. 30s`,
		`"30"`:     `patience is "30", must be a duration in h, m, s or ms, e.g. 30s`,
		`"soon"`:   `patience is "soon", must be a duration in h, m, s or ms, e.g. 30s`,
		`""`:       `patience is "", must be a duration in h, m, s or ms, e.g. 30s`,
		`"a text that goes on and on and on and on and on and on"`: `patience is "a text that goes on and on and on and o, must be a duration in h, m, s or ms, e.g. 30s`,
		`"-5s"`:      "patience is -5s, must be at least 1s, e.g. 30s",
		`"10ms"`:     "patience is 10ms, must be at least 1s, e.g. 30s",
		`"1d"`:       `patience is "1d", must be a duration in h, m, s or ms, e.g. 30s`,
		`"8760h1ms"`: "patience is 8760h0m0.001s, must be at most 8760h0m0s, e.g. 30s",
	} {
		var got check.Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if err := got.AtLeast(time.Second, "patience", "30s"); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestADurationComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := check.For(time.Duration(rapid.Int64().Draw(t, "nanoseconds")))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got check.Duration
		if err := json.Unmarshal(text, &got); err != nil || got != *want {
			t.Fatalf("%d became %s, and then %d (%v)", want.Duration, text, got.Duration, err)
		}
	})
}
