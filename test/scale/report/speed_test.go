package report_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// Times and CPU are compared at equal speeds of the machine, and told as they were.
func TestRatiosAreOfEqualSpeeds(t *testing.T) {
	ours, floor := flip(report.Ours, nil, 0), flip(report.Floor, nil, 0)
	for i := range ours.Phases {
		ours.Phases[i].Took, floor.Phases[i].Took = 15*time.Second, 10*time.Second
		ours.Phases[i].CPU, floor.Phases[i].CPU = 6*time.Second, 2*time.Second
		ours.Phases[i].Work, floor.Phases[i].Work = 1500*time.Microsecond, time.Millisecond
	}
	var b strings.Builder
	report.Table(&b, report.Run{Results: []report.Result{floor, ours}})
	times, speeds := 0, 0
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, report.Ours) {
			continue
		}
		if strings.Contains(line, "0.67") {
			speeds++
		}
		if strings.Contains(line, "15.0 s") {
			times++
			for _, want := range []string{"1.00×", "2.00×"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s is missing in %s", want, line)
				}
			}
		}
	}
	if times != 2 || speeds != 2 {
		t.Errorf("%d lines of ours with times and %d with speeds, want 2 and 2:\n%s", times, speeds, &b)
	}
}

// flipsOf adds pairs of flips to a run, on a machine that is slower in some of them. Ours takes a tenth
// longer than the floor, and both take longer with a power of the piece of work.
func flipsOf(run *report.Run, pairs int, floors, ours float64, other func(pair int) float64) {
	for pair := range pairs {
		for _, subject := range []string{report.Floor, report.Ours} {
			slow, times, power := 1+0.1*float64(pair%3), 1.0, floors
			if subject == report.Ours {
				slow, times, power = 1+0.15*float64(pair%2), 1.1, ours
			}
			r := flip(subject, nil, 0)
			for i := range r.Phases {
				r.Phases[i].Work = time.Duration(slow * float64(time.Millisecond))
				r.Phases[i].Took = time.Duration(times * math.Pow(slow, power) * other(pair) * float64(10*time.Second))
			}
			run.Add(r.At(report.Turn{Pair: pair + 1, Try: 1}))
		}
	}
}

func TestSpeedsAreToThePowerByWhichTheFloorFollowsThem(t *testing.T) {
	same := func(int) float64 { return 1 }
	for name, tc := range map[string]struct {
		pairs        int
		floors, ours float64
		other        func(pair int) float64
		words        string
		want         float64
	}{
		"times follow the work":      {12, 1, 1, same, "takes 1 % (standard error 0, 12 runs) longer", 1.1},
		"times follow it more":       {12, 1.7, 1.7, same, "takes 1.7 % (standard error 0, 12 runs) longer", 1.1},
		"times follow it less":       {12, 0.5, 0.5, same, "takes 0.5 % (standard error 0, 12 runs) longer", 1.1},
		"ours have no part in it":    {12, 1.7, 3.4, same, "takes 1.7 % (standard error 0, 12 runs) longer", 1.1 * (1 + math.Pow(1.15, 1.7)) / 2},
		"there are too few runs":     {2, 1, 1, same, "speeds are as they are (power 1)", 1.1},
		"times follow anything else": {12, 1, 1, func(pair int) float64 { return 1 + float64(pair%4/2) }, "speeds are as they are (power 1)", 1.1},
	} {
		t.Run(name, func(t *testing.T) {
			var run report.Run
			flipsOf(&run, tc.pairs, tc.floors, tc.ours, tc.other)
			if got := report.TimeRatio(&run, report.Ours, 1); math.Abs(got-tc.want) > 1e-6 {
				t.Errorf("the ratio is %v, want %v", got, tc.want)
			}
			page := string(report.Page(run, nil))
			if !strings.Contains(page, tc.words) {
				t.Errorf("%q is not what the page says:\n%s", tc.words, page)
			}
		})
	}
}
