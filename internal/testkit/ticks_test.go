package testkit

import (
	"testing"
	"time"
)

func TestOfTheTicksThoseOfAllCPUsCountAndGuestsOnce(t *testing.T) {
	const cpus = "\ncpu0 9 9 9 9 9 9 9 9 9 9\nintr 7 1\n"
	for name, tc := range map[string]struct {
		stat string
		want Ticks
	}{
		"a virtual machine":      {"cpu  100 20 30 400 5 0 6 50 70 8" + cpus, Ticks{all: 611, idle: 405, stolen: 50}},
		"without guests":         {"cpu  100 20 30 400 5 0 6 50" + cpus, Ticks{all: 611, idle: 405, stolen: 50}},
		"a system without steal": {"cpu  100 20 30 400 5 0 6" + cpus, Ticks{}},
		"not a number":           {"cpu  100 20 x 400 5 0 6 50" + cpus, Ticks{}},
		"another file":           {"MemTotal: 1 2 3 4 5 6 7 8 9", Ticks{}},
		"no file":                {"", Ticks{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseTicks(tc.stat); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheShareThatWasStolenIsOfAllTimeSinceThen(t *testing.T) {
	before := Ticks{all: 1000, stolen: 100}
	for name, tc := range map[string]struct {
		before, after Ticks
		want          float64 // below 0: not known
	}{
		"a quarter":           {before, Ticks{all: 1400, stolen: 200}, 0.25},
		"nothing":             {before, Ticks{all: 1400, stolen: 100}, 0},
		"no time has passed":  {before, before, -1},
		"known only at first": {before, Ticks{}, -1},
		"known only at last":  {Ticks{}, before, -1},
		"known never":         {Ticks{}, Ticks{}, -1},
		"moved to a new host": {before, Ticks{all: 1400, stolen: 7}, -1},
		"everything":          {before, Ticks{all: 1400, stolen: 500}, 1},
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
	before, after := Ticks{all: 1000, idle: 500, stolen: 100}, Ticks{all: 1400, idle: 600, stolen: 150}
	if got := after.Busy(before); got != 2500*time.Millisecond {
		t.Errorf("got %v", got)
	}
}
