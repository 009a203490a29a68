package main

import "testing"

func TestOfTheTicksThoseOfAllCPUsCountAndGuestsOnce(t *testing.T) {
	const cpus = "\ncpu0 9 9 9 9 9 9 9 9 9 9\nintr 7 1\n"
	for name, tc := range map[string]struct {
		stat string
		want ticks
	}{
		"a virtual machine":      {"cpu  100 20 30 400 5 0 6 50 70 8" + cpus, ticks{all: 611, stolen: 50}},
		"without guests":         {"cpu  100 20 30 400 5 0 6 50" + cpus, ticks{all: 611, stolen: 50}},
		"a system without steal": {"cpu  100 20 30 400 5 0 6" + cpus, ticks{}},
		"not a number":           {"cpu  100 20 x 400 5 0 6 50" + cpus, ticks{}},
		"another file":           {"MemTotal: 1 2 3 4 5 6 7 8 9", ticks{}},
		"no file":                {"", ticks{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseTicks(tc.stat); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheShareThatWasStolenIsOfAllTimeSinceThen(t *testing.T) {
	before := ticks{all: 1000, stolen: 100}
	for name, tc := range map[string]struct {
		before, after ticks
		want          float64 // below 0: not known
	}{
		"a quarter":           {before, ticks{all: 1400, stolen: 200}, 0.25},
		"nothing":             {before, ticks{all: 1400, stolen: 100}, 0},
		"no time has passed":  {before, before, -1},
		"known only at first": {before, ticks{}, -1},
		"known only at last":  {ticks{}, before, -1},
		"known never":         {ticks{}, ticks{}, -1},
		"moved to a new host": {before, ticks{all: 1400, stolen: 7}, -1},
		"everything":          {before, ticks{all: 1400, stolen: 500}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.after.since(tc.before)
			if known := got != nil; known != (tc.want >= 0) || known && *got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
