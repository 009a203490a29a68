package dashboard_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestHistoryIsBoundedAndGetsCoarser(t *testing.T) {
	var h dashboard.History
	for s := range 30 * 3600 { // 30 hours in which each second differs
		h.Add(noon.Add(time.Duration(s)*time.Second), s%7, s)
	}
	points := h.Points("")
	if limit := 2*(5*60+55*4+23*12+3) + 1; len(points) > limit {
		t.Errorf("%d points, want at most %d", len(points), limit)
	}
	last := noon.Add(30*time.Hour - time.Second)
	seen := map[string]int{}
	for i, p := range points {
		age := last.Sub(time.UnixMilli(p[0]))
		switch {
		case age < 5*time.Minute:
			seen["minutes"]++
		case age < time.Hour:
			seen["hour"]++
		case age < 24*time.Hour:
			seen["day"]++
		case i > 0:
			t.Errorf("a second point is %v old", age)
		}
	}
	if seen["minutes"] != 300 || seen["hour"] < 220 || seen["day"] < 276 {
		t.Errorf("points by age: %v", seen)
	}
}

func TestHistoryKeepsPeaksAndTheLastValues(t *testing.T) {
	var h dashboard.History
	h.Add(noon, 0, 10)
	h.Add(noon.Add(1*time.Second), 10, 0) // a storm of two seconds
	h.Add(noon.Add(3*time.Second), 1, 9)
	h.Add(noon.Add(4*time.Second), 0, 10)
	h.Add(noon.Add(20*time.Hour), 2, 8)
	want := [][4]int64{
		{noon.Add(1 * time.Second).UnixMilli(), 10, 0, 0},
		{noon.Add(4 * time.Second).UnixMilli(), 0, 10, 0},
		{noon.Add(20 * time.Hour).UnixMilli(), 2, 8, 0},
	}
	if got := h.Points(""); len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, want %v", got, want)
	}
	h.Add(noon.Add(40*time.Hour), 3, 7)
	if got := h.Points(""); len(got) != 3 || got[0][1] != 0 {
		t.Errorf("after a day: %v, want how it was before it", got)
	}
}

func TestUnchangedValuesAreKeptOnce(t *testing.T) {
	var h dashboard.History
	for s := range 100 {
		h.Add(noon.Add(time.Duration(s)*time.Second), 1, 2)
	}
	if got := h.Points("rule"); len(got) != 1 || got[0][1] != 1 {
		t.Errorf("%v", got)
	}
	if got := h.Points("another"); len(got) != 0 {
		t.Errorf("of a rule that never was: %v", got)
	}
}

func TestRunKeepsHistory(t *testing.T) {
	f := fleet(held("a"), released("b"))
	now, tick := noon, make(chan time.Time)
	s := dashboard.New(dashboard.Options{Fleet: f, Now: func() time.Time { now = now.Add(time.Minute); return now }})
	s.SetAfter(func(time.Duration) <-chan time.Time { return tick })
	url := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	tick <- noon // the first sample is kept
	f.Put(released("a"))
	tick <- noon
	cancel()
	<-ended
	for rule, want := range map[string][][4]int64{
		"":        {{noon.Add(time.Minute).UnixMilli(), 1, 1, 0}, {noon.Add(2 * time.Minute).UnixMilli(), 0, 2, 0}},
		"network": {{noon.Add(time.Minute).UnixMilli(), 1, 1, 0}, {noon.Add(2 * time.Minute).UnixMilli(), 0, 2, 0}},
		"other":   {},
	} {
		var points [][4]int64
		if err := json.NewDecoder(get(t, url+"/api/history?rule="+rule).body).Decode(&points); err != nil {
			t.Fatal(err)
		}
		if len(points) != len(want) || len(want) == 2 && (points[0] != want[0] || points[1] != want[1]) {
			t.Errorf("rule %q: %v, want %v", rule, points, want)
		}
	}
}
