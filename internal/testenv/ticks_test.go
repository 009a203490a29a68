package testenv

import (
	"testing"
	"time"
)

func TestOfTheTicksThoseOfAllCPUsCountAndGuestsOnce(t *testing.T) {
	const cpus = "\ncpu0 9 9 9 9 9 9 9 9 9 9\ncpu1 9 9 9 9 9 9 9 9 9 9\nintr 7 1\n"
	now := time.Now()
	for name, tc := range map[string]struct {
		stat string
		want Ticks
	}{
		"a virtual machine":      {"cpu  100 20 30 400 5 0 6 50 70 8" + cpus, Ticks{at: now, cpus: 2, busy: 156, idle: 405, stolen: 50}},
		"without guests":         {"cpu  100 20 30 400 5 0 6 50" + cpus, Ticks{at: now, cpus: 2, busy: 156, idle: 405, stolen: 50}},
		"a system without steal": {"cpu  100 20 30 400 5 0 6" + cpus, Ticks{}},
		"not a number":           {"cpu  100 20 x 400 5 0 6 50" + cpus, Ticks{}},
		"another file":           {"MemTotal: 1 2 3 4 5 6 7 8 9", Ticks{}},
		"no file":                {"", Ticks{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseTicks(tc.stat, now); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheShareThatWasStolenIsOfAllTimeSinceThen(t *testing.T) {
	now := time.Now()
	before := Ticks{at: now, cpus: 2, busy: 500, idle: 1000, stolen: 100}
	after := func(busy, idle, stolen int64) Ticks { // two seconds later, with 400 ticks of two CPUs
		return Ticks{at: now.Add(2 * time.Second), cpus: 2, busy: 500 + busy, idle: 1000 + idle, stolen: 100 + stolen}
	}
	for name, tc := range map[string]struct {
		before, after Ticks
		want          float64 // below 0: not known
	}{
		"a quarter":               {before, after(200, 100, 100), 0.25},
		"nothing":                 {before, after(300, 100, 0), 0},
		"what was idle was not":   {before, after(20, 360, 300), 0.05},
		"more than there is time": {before, after(100, 310, 300), 0},
		"what nobody counts":      {before, after(100, 100, 20), 0.05},
		"no time has passed":      {before, before, -1},
		"known only at first":     {before, Ticks{}, -1},
		"known only at last":      {Ticks{}, before, -1},
		"known never":             {Ticks{}, Ticks{}, -1},
		"moved to a new host":     {before, after(200, 100, -93), -1},
		"everything":              {before, after(0, 0, 400), 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.after.Stolen(tc.before)
			if known := got != nil; known != (tc.want >= 0) || known && *got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBusyIsWhatIsNeitherIdleNorStolen(t *testing.T) {
	before, after := Ticks{busy: 400, idle: 500, stolen: 100}, Ticks{busy: 650, idle: 600, stolen: 150}
	if got := after.Busy(before); got != 2500*time.Millisecond {
		t.Errorf("got %v", got)
	}
}
