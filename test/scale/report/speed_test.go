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
	lines := 0
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, report.Ours) && strings.Contains(line, "15.0 s") {
			lines++
			for _, want := range []string{"0.67", "1.00×", "2.00×"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s is missing in %s", want, line)
				}
			}
		}
	}
	if lines != 2 {
		t.Errorf("%d lines of ours, want 2:\n%s", lines, &b)
	}
}
