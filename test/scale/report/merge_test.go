package report_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// took is a flip of ours whose phases took so many seconds.
func took(release, hold time.Duration) report.Result {
	r := flip(report.Ours, nil, 0)
	r.Phases[0].Took, r.Phases[1].Took = release*time.Second, hold*time.Second
	return r
}

func TestOfSeveralRunsTheFasterOfEachPhaseCountsAndTheMostMemory(t *testing.T) {
	first, second := took(7, 5), took(6, 8)
	first.Peak, first.Settled, first.Heap, first.HeapEmpty, first.StatusBytes = 90, 40, 20, 6, 100
	second.Peak, second.Settled, second.Heap, second.HeapEmpty, second.StatusBytes = 80, 50, 30, 5, 200
	want := took(6, 5)
	want.Peak, want.Settled, want.Heap, want.HeapEmpty, want.StatusBytes, want.Runs = 90, 50, 30, 5, 200, 2
	for _, order := range [][]report.Result{{first, second}, {second, first}} {
		var run report.Run
		for _, r := range order {
			run.Add(r)
		}
		for i := range run.Results[0].Phases {
			if len(run.Results[0].Phases[i].Attempts) != 2 {
				t.Errorf("%d attempts are known, want 2", len(run.Results[0].Phases[i].Attempts))
			}
			run.Results[0].Phases[i].Attempts = nil
		}
		if len(run.Results) != 1 || !reflect.DeepEqual(run.Results[0], want) {
			t.Errorf("got %+v\nwant %+v", run.Results, want)
		}
	}
}

func TestARunThatDidNotFinishDoesNotTakeThePlaceOfOneThatDid(t *testing.T) {
	good, bad := took(7, 5), took(1, 1)
	bad.Problem, bad.Phases, bad.Peak = "it crashed", bad.Phases[:1], 99
	for _, order := range [][]report.Result{{good, bad}, {bad, good}, {bad, good, bad}} {
		var run report.Run
		for _, r := range order {
			run.Add(r)
		}
		if len(run.Results) != 1 {
			t.Fatalf("got %+v", run.Results)
		}
		if r := run.Results[0]; r.Problem != "" || r.Runs != 1 || !reflect.DeepEqual(r.Phases, good.Phases) || r.Peak != 99 {
			t.Errorf("got %+v", r)
		}
	}
}

func TestOnlyRunsOfTheSameTrialAreMerged(t *testing.T) {
	for name, change := range map[string]func(r *report.Result){
		"scenario": func(r *report.Result) { r.Scenario = report.Many },
		"subject":  func(r *report.Result) { r.Subject = report.Floor },
		"nodes":    func(r *report.Result) { r.Nodes++ },
		"rules":    func(r *report.Result) { r.Rules++ },
		"mode":     func(r *report.Result) { r.Mode = "bootstrap-only" },
		"writers":  func(r *report.Result) { r.Writers++ },
		"phases":   func(r *report.Result) { r.Phases[1].Name = "other" },
	} {
		var run report.Run
		run.Add(took(7, 5))
		other := took(6, 4)
		change(&other)
		run.Add(other)
		if len(run.Results) != 2 || run.Results[0].Runs != 1 || !slices.Equal([]time.Duration{7 * time.Second, 5 * time.Second},
			[]time.Duration{run.Results[0].Phases[0].Took, run.Results[0].Phases[1].Took}) {
			t.Errorf("another %s is merged: %+v", name, run.Results)
		}
	}
}

func TestAddingKeepsWhatWasGiven(t *testing.T) {
	first := took(7, 5)
	var run report.Run
	run.Add(first)
	run.Add(took(1, 1))
	if first.Phases[0].Took != 7*time.Second {
		t.Error("the phases of the first result were changed")
	}
}

// A phase that was slower on a slower machine may be the faster one.
func TestOfSeveralRunsTheFasterCountsForAsFastAsTheMachineWas(t *testing.T) {
	slow, fast := took(8, 8), took(6, 6)
	slow.Phases[0].Work, fast.Phases[0].Work = 2*time.Millisecond, time.Millisecond
	slow.Phases[1].Work = 2 * time.Millisecond // of the other one nobody knows
	for _, order := range [][]report.Result{{slow, fast}, {fast, slow}} {
		var run report.Run
		for _, r := range order {
			run.Add(r)
		}
		if got := run.Results[0].Phases; got[0].Took != 8*time.Second || got[1].Took != 6*time.Second {
			t.Errorf("got %v and %v, want that of the slow machine, and the shorter one", got[0].Took, got[1].Took)
		}
	}
}

// What is said of a phase that was disturbed, its speed first of all, is worth little: the other one
// is shown, though it took longer.
func TestARunThatWasDisturbedIsShownOnlyWhereThereIsNoOther(t *testing.T) {
	stolen := func(share float64, r report.Result) report.Result {
		for i := range r.Phases {
			r.Phases[i].Stolen = &share
		}
		return r
	}
	calm, disturbed, worse := stolen(0.01, took(7, 5)), stolen(0.4, took(3, 3)), stolen(0.5, took(9, 9))
	for name, c := range map[string]struct {
		runs []report.Result
		want time.Duration
	}{
		"the calm one first": {[]report.Result{calm, disturbed}, 7 * time.Second},
		"the calm one last":  {[]report.Result{disturbed, worse, calm}, 7 * time.Second},
		"none is calm":       {[]report.Result{worse, disturbed}, 3 * time.Second},
	} {
		var run report.Run
		for _, r := range c.runs {
			run.Add(r)
		}
		if got := run.Results[0].Phases[0].Took; got != c.want {
			t.Errorf("%s: shows one of %v, want %v", name, got, c.want)
		}
	}
}

// How fast a machine is changes from minute to minute: runs are compared with those next to them.
func TestOfSeveralRunsTheMedianRatioCounts(t *testing.T) {
	subject := func(name string, seconds ...time.Duration) []report.Result {
		var results []report.Result
		for _, s := range seconds {
			r := took(s, s)
			r.Subject = name
			results = append(results, r)
		}
		return results
	}
	ours, floor := subject(report.Ours, 11, 30, 60), subject(report.Floor, 10, 20, 50)
	var run report.Run
	for i := range ours {
		run.Add(floor[i])
		run.Add(ours[i])
	}
	if got := report.TimeRatio(&run, report.Ours, 0); got != 1.2 {
		t.Errorf("the ratio is %v, want that of 60 to 50", got)
	}
	run.Results[0].Phases[0].Attempts = nil // as of a file from before
	if got := report.TimeRatio(&run, report.Ours, 0); got != 1.1 {
		t.Errorf("the ratio is %v, want that of 11 to 10: the faster ones", got)
	}
}

// A file from before knows only the best of its runs: a run that is added to it must not stand for all.
func TestRunsThatAreNotKnownAreNotHidden(t *testing.T) {
	old, floor := took(8, 8), took(4, 4)
	old.Runs, floor.Runs, floor.Subject = 2, 2, report.Floor
	added, addedFloor := took(10, 10), took(10, 10)
	addedFloor.Subject = report.Floor
	var run report.Run
	for _, r := range []report.Result{floor, old, addedFloor, added} {
		run.Add(r)
	}
	if got := report.TimeRatio(&run, report.Ours, 0); got != 2 {
		t.Errorf("the ratio is %v, want that of 8 to 4", got)
	}
}

func TestEveryBuildThatWasMeasuredIsNamed(t *testing.T) {
	for _, c := range [][3]string{{"", "a", "a"}, {"a", "a", "a"}, {"a", "b", "a, b"}, {"a, b", "a", "a, b"}} {
		run, err := report.Run{Version: c[1]}.After(report.Run{Version: c[0]})
		if err != nil || run.Version != c[2] {
			t.Errorf("%q and %q are named %q, want %q (%v)", c[0], c[1], run.Version, c[2], err)
		}
	}
}

func TestRunsOfOtherMachinesAreNotAdded(t *testing.T) {
	before := report.Run{Machine: report.Machine{CPU: "a CPU", Cores: 2}, Command: "one"}
	for name, tc := range map[string]struct {
		machine report.Machine
		want    string // none: they are added
	}{
		"the same":          {report.Machine{CPU: "a CPU", Cores: 2, Memory: 1, Go: "another"}, ""},
		"another processor": {report.Machine{CPU: "b CPU", Cores: 2}, "was measured on a CPU (2 cores), and this machine is b CPU (2 cores): write to another file"},
		"more cores":        {report.Machine{CPU: "a CPU", Cores: 4}, "was measured on a CPU (2 cores), and this machine is a CPU (4 cores): write to another file"},
	} {
		run, err := report.Run{Machine: tc.machine, Command: "two"}.After(before)
		switch {
		case tc.want == "" && (err != nil || run.Command != "one\ntwo"):
			t.Errorf("%s: got %+v, %v", name, run, err)
		case tc.want != "" && (err == nil || err.Error() != tc.want):
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
