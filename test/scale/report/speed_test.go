package report_test

import (
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
