package report_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// stolen is a flip in whose phases other guests had such shares of the CPU time; below 0: not known.
func stolen(subject string, seconds time.Duration, shares ...float64) report.Result {
	r := took(seconds, seconds)
	r.Subject = subject
	for i, share := range shares {
		if share >= 0 {
			r.Phases[i].Stolen = &share
		}
	}
	return r
}

// both adds a pair of flips that took so many seconds: the shares are those of ours.
func both(run *report.Run, pair, try int, ours, floor time.Duration, shares ...float64) {
	turn := report.Turn{Pair: pair, Try: try, Place: 1}
	run.Add(stolen(report.Floor, floor, 0, 0).At(turn))
	turn.Place = 2
	run.Add(stolen(report.Ours, ours, shares...).At(turn))
}

func TestOnlyWhatWasStolenDisturbs(t *testing.T) {
	for name, tc := range map[string]struct {
		shares []float64
		want   bool
	}{
		"nothing was stolen":            {[]float64{0, 0}, false},
		"as much as the limit":          {[]float64{0.15, 0.15}, false},
		"more in the first phase":       {[]float64{0.151, 0}, true},
		"more in the last phase":        {[]float64{0, 0.7}, true},
		"nobody knows":                  {[]float64{-1, -1}, false},
		"of one phase nobody knows":     {[]float64{-1, 0.16}, true},
		"a result without known shares": {nil, false},
	} {
		for _, seconds := range []time.Duration{1, 1000} {
			if r := stolen(report.Ours, seconds, tc.shares...); r.Disturbed() != tc.want {
				t.Errorf("%s, and it took %d s: disturbed is %v", name, seconds, r.Disturbed())
			}
		}
	}
}

func TestEveryAttemptIsKeptWithItsTurn(t *testing.T) {
	var run report.Run
	both(&run, 1, 1, 12, 10, 0.3, 0.01)
	both(&run, 1, 2, 11, 10, 0.02, 0.01)
	data, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	run = report.Run{}
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	for _, r := range run.Results {
		for _, p := range r.Phases {
			for i, a := range p.Attempts {
				place, disturbed := 1, false
				if r.Subject == report.Ours {
					place, disturbed = 2, i == 0
				}
				if want := (report.Turn{Pair: 1, Try: i + 1, Place: place, Disturbed: disturbed}); a.Turn != want || a.Stolen == nil {
					t.Errorf("%s, %s: got %+v, want %+v and what was stolen", r.Subject, p.Name, a, want)
				}
			}
			if len(p.Attempts) != 2 {
				t.Errorf("%s, %s: %d attempts, want 2", r.Subject, p.Name, len(p.Attempts))
			}
		}
	}
	if !bytes.Contains(data, []byte(`"stolen":0,`)) {
		t.Error("that nothing was stolen is not said")
	}
}

// Whether a pair counts is never asked of what it took: the one that is set aside here is the better.
func TestRatiosAreOfPairsThatWereNotDisturbed(t *testing.T) {
	for name, tc := range map[string]struct {
		add   func(run *report.Run)
		want  float64
		words string // none: nothing is said
	}{
		"one of three was disturbed": {func(run *report.Run) {
			both(run, 1, 1, 10, 10, 0.02, 0.16)
			both(run, 1, 2, 13, 10, 0, 0.15)
			both(run, 2, 1, 15, 10, 0, 0.01)
		}, 1.4, "3 pairs, 1 set aside"},
		"the floor was disturbed": {func(run *report.Run) {
			run.Add(stolen(report.Floor, 20, 0.5, 0).At(report.Turn{Pair: 1, Try: 1}))
			run.Add(stolen(report.Ours, 10, 0, 0).At(report.Turn{Pair: 1, Try: 1}))
			both(run, 1, 2, 13, 10, 0, 0)
		}, 1.3, "2 pairs, 1 set aside"},
		"none was disturbed": {func(run *report.Run) {
			both(run, 1, 1, 13, 10, 0, 0)
		}, 1.3, "1 pair, none set aside"},
		"all were disturbed": {func(run *report.Run) {
			both(run, 1, 1, 15, 10, 0.2, 0.2)
			both(run, 1, 2, 20, 10, 0.3, 0.3)
			both(run, 2, 1, 30, 10, 0.4, 0.4)
		}, 1.4, "3 pairs, all disturbed: ratios are of all"},
		"time that was stolen does not count": {func(run *report.Run) {
			both(run, 1, 1, 15, 10, 0.1, 0)
		}, 1.35, "1 pair, none set aside"},
		"half of a pair failed": {func(run *report.Run) {
			both(run, 1, 1, 13, 10, 0, 0)
			run.Add(stolen(report.Floor, 1, 0, 0).At(report.Turn{Pair: 2, Try: 1}))
			both(run, 3, 1, 26, 20, 0, 0)
		}, 1.3, "2 pairs, none set aside"},
		"the file is from before": {func(run *report.Run) {
			run.Add(stolen(report.Floor, 10))
			run.Add(stolen(report.Ours, 11))
			both(run, 2, 1, 10, 10, 0.2, 0.2)
			both(run, 2, 2, 13, 10, 0, 0)
		}, 1.2, "3 pairs, 1 set aside; of 1 nobody knows what was stolen"},
		"nobody knows": {func(run *report.Run) {
			both(run, 1, 1, 11, 10)
		}, 1.1, ""},
		"not all runs are known": {func(run *report.Run) {
			floor, ours := stolen(report.Floor, 4), stolen(report.Ours, 8)
			floor.Runs, ours.Runs = 2, 2
			run.Add(floor)
			run.Add(ours)
			both(run, 3, 1, 10, 10, 0, 0)
		}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var run report.Run
			tc.add(&run)
			if got := report.TimeRatio(&run, report.Ours, 0); got < tc.want-1e-9 || got > tc.want+1e-9 {
				t.Errorf("the ratio is %v, want %v", got, tc.want)
			}
			var table bytes.Buffer
			report.Table(&table, run)
			page := string(report.Page(run, nil))
			if tc.words == "" {
				if strings.Contains(page, "pairs") || strings.Contains(table.String(), "pair") {
					t.Errorf("something is said of pairs:\n%s", page)
				}
				return
			}
			if !strings.Contains(table.String(), "\n  "+tc.words+"\n") {
				t.Errorf("the table does not say %q:\n%s", tc.words, table.String())
			}
			for _, words := range []string{"- All nodes flip, 100 nodes, 1 rule: " + tc.words + "\n", "more than 15 % of the CPU time", "up to 2 times"} {
				if !strings.Contains(page, words) {
					t.Errorf("the page does not say %q:\n%s", words, page)
				}
			}
		})
	}
}

// The CPU of the picture and of ten times the nodes too is of runs that were not disturbed.
func TestWorkIsOfRunsThatWereNotDisturbed(t *testing.T) {
	run := madeUp(t)
	large := find(t, &run, report.Flip, 5000, 1)
	for i := range large.Phases {
		p := &large.Phases[i]
		once := report.Attempt{Took: p.Took, CPU: p.CPU, Work: p.Work}
		slow := report.Attempt{Took: p.Took, CPU: 2 * p.CPU, Work: p.Work, Turn: report.Turn{Disturbed: true}}
		p.Attempts = []report.Attempt{slow, once, slow}
	}
	large.Runs = 3
	if got := line(t, run, "ten times the nodes"); !strings.HasSuffix(got, "| met |") {
		t.Errorf("got %s", got)
	}
}

func TestPairsAreNotMadeOfRunsOfOtherTrials(t *testing.T) {
	var run report.Run
	both(&run, 1, 1, 40, 20, 0, 0)
	both(&run, 2, 1, 30, 10, 0, 0)
	for i, seconds := range []time.Duration{60, 15} {
		many := stolen(report.Ours, seconds, 0, 0).At(report.Turn{Pair: i + 1, Try: 1})
		many.Scenario, many.Rules, many.Subject = report.Many, 100, "other"
		run.Add(many)
	}
	if got := report.TimeRatio(&run, "other", 0); got != 1.5 {
		t.Errorf("the ratio is %v, want that of the best, 15 to 10", got)
	}
}

func TestThePairsOfATrialAreCounted(t *testing.T) {
	var run report.Run
	count := func(want int) {
		t.Helper()
		if got := run.Pairs(took(1, 1)); got != want {
			t.Errorf("got %d pairs, want %d", got, want)
		}
	}
	count(0)
	run.Add(stolen(report.Nobody, 1))
	count(0)
	for range 2 { // as of a file from before
		run.Add(stolen(report.Floor, 1))
		run.Add(stolen(report.Ours, 1))
	}
	count(2)
	both(&run, 3, 1, 1, 1, 0.5, 0.5)
	both(&run, 3, 2, 1, 1, 0, 0)
	count(3)
	other := stolen(report.Ours, 1).At(report.Turn{Pair: 7, Try: 1})
	other.Nodes++
	run.Add(other)
	count(3)
	run.Add(stolen(report.Floor, 1).At(report.Turn{Pair: 4, Try: 1})) // and the other half was lost
	count(4)
	if attempts := run.Results[slices.IndexFunc(run.Results, func(r report.Result) bool { return r.Subject == report.Ours })].Phases[0].Attempts; len(attempts) != 4 {
		t.Errorf("%d attempts, want 4", len(attempts))
	}
}

func TestATurnDoesNotChangeTheResultItIsGivenTo(t *testing.T) {
	r := stolen(report.Ours, 1, 0.5, 0)
	_ = r.At(report.Turn{Pair: 1, Try: 1})
	if r.Phases[0].Attempts != nil {
		t.Error("it has attempts")
	}
}
