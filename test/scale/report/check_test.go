package report_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// flip is that of a subject with 100 nodes and one rule, as it should be.
func flip(subject string, requests map[string]int, etcd int64) report.Result {
	phase := func(name string) report.Phase {
		return report.Phase{Name: name, Took: 1500 * time.Millisecond, Quiet: 600 * time.Millisecond, Requests: maps.Clone(requests), EtcdBytes: etcd}
	}
	return report.Result{
		Scenario: report.Flip, Subject: subject, Nodes: 100, Rules: 1, Mode: "continuous", Writers: 8,
		Phases: []report.Phase{phase("release"), phase("hold")}, StatusBytes: 20 << 10,
	}
}

// once is another scenario of ours with 100 nodes and one phase.
func once(scenario, phase string, requests map[string]int, extra map[string]float64) report.Result {
	return report.Result{
		Scenario: scenario, Subject: report.Ours, Nodes: 100, Rules: 1,
		Phases: []report.Phase{{Name: phase, Took: time.Second, Requests: requests, Extra: extra}},
	}
}

// Results of the good run.
const (
	ours = iota
	floor
	nobody
	steady
	restart
	busy
	join
)

// good is a run without problems.
func good() report.Run {
	throttled := once(report.Busy, "release", map[string]int{"patch nodes": 140, "create events": 100}, nil)
	throttled.Phases[0].Refused = map[string]int{"429": 45}
	return report.Run{Results: []report.Result{
		flip(report.Ours, map[string]int{"patch nodes": 100, "create events": 100, "patch nodereadinessrules/status": 4, "update leases": 3, "watch nodes": 1}, 3_400_000),
		flip(report.Floor, map[string]int{"patch nodes": 100}, 3_000_000),
		flip(report.Nobody, nil, 1_500_000),
		once(report.Steady, "steady", map[string]int{"update leases": 60, "watch nodes": 2}, nil),
		once(report.Restart, "restart", map[string]int{"patch nodes": 10, "list nodes": 1}, map[string]float64{"changes": 10, "wasted patches": 0}),
		throttled,
		once(report.Join, "join", map[string]int{"patch nodes": 100, "create events": 200}, map[string]float64{"changes": 100, "births": 100, "born without the taint": 0}),
	}}
}

func TestANodeThatFlapsMayBeChangedAsOftenAsItFlips(t *testing.T) {
	for sent, want := range map[int]bool{98: false, 99: true, 120: true, 129: true, 130: false} {
		run := good()
		run.Results = append(run.Results, once(report.Flap, "release", map[string]int{"patch nodes": sent}, map[string]float64{"changes": 99, "flips": 30}))
		if problems := report.Check(run); (problems == nil) != want {
			t.Errorf("%d patches: got %q", sent, problems)
		}
	}
}

func TestAPhaseThatLastsMayBringMoreStatusIntoEtcd(t *testing.T) {
	run := good()
	slow := &run.Results[ours].Phases[0]
	slow.Took, slow.Requests["patch nodereadinessrules/status"] = time.Minute, 60
	slow.EtcdBytes += 60 * run.Results[ours].StatusBytes
	if problems := report.Check(run); problems != nil {
		t.Errorf("got %q", problems)
	}
}

func TestStatusThatWasThrottledMayBeSentAgain(t *testing.T) {
	for sent, want := range map[int]bool{48: true, 49: false} { // 45 were throttled, and 3 are allowed in a second
		run := good()
		run.Results[busy].Phases[0].Requests["patch nodereadinessrules/status"] = sent
		if problems := report.Check(run); (problems == nil) != want {
			t.Errorf("%d writes: got %q", sent, problems)
		}
	}
}

func TestTheBytesOfARestartAreNotChecked(t *testing.T) {
	run := good()
	run.Results[restart].Phases[0].EtcdBytes = 900_000
	floor := run.Results[restart]
	floor.Subject, floor.Phases = report.Floor, slices.Clone(floor.Phases)
	floor.Phases[0].EtcdBytes = 150_000
	run.Results = append(run.Results, floor)
	if problems := report.Check(run); problems != nil {
		t.Errorf("got %q", problems)
	}
}

func TestAWatchThatIsBegunAgainIsNoWorkThatIsLeft(t *testing.T) {
	run := good()
	run.Results[ours].Phases[0].Left = map[string]int{"watch nodes": 1, "patch nodes": 0}
	if problems := report.Check(run); problems != nil {
		t.Errorf("got %q", problems)
	}
}

// How often an event happened is told once a minute, which may be then; more than that is work.
func TestTheCountOfAnEventIsNoWorkThatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		flips   float64
		patches int
		want    string
	}{
		"a node flaps":                     {5, 2, ""},
		"a node flaps, and there are more": {5, 3, "patch events (3 times)"},
		"no node flaps":                    {0, 1, "patch events (once)"},
	} {
		run := good()
		phase := &run.Results[ours].Phases[1]
		phase.Extra = map[string]float64{"changes": 100, "flips": tc.flips}
		phase.Left = map[string]int{"patch events": tc.patches}
		var want []string
		if tc.want != "" {
			want = []string{"flip, 100 nodes, 1 rule, hold: readygate had work left after quiet: " + tc.want}
		}
		if problems := report.Check(run); !slices.Equal(problems, want) {
			t.Errorf("%s: got %q, want %q", name, problems, want)
		}
	}
}

func TestARunThatKeepsAllRulesHasNoProblem(t *testing.T) {
	if problems := report.Check(good()); problems != nil {
		t.Errorf("got %q", problems)
	}
}

func TestCheckSaysWhichRuleIsBroken(t *testing.T) {
	hold := func(run *report.Run) *report.Phase { return &run.Results[ours].Phases[1] }
	for name, test := range map[string]struct {
		breaks func(run *report.Run)
		want   string
	}{
		"a node is patched twice": {
			func(run *report.Run) { hold(run).Requests["patch nodes"] = 103 },
			"flip, 100 nodes, 1 rule, hold: readygate sent 103 patches of nodes for 100 changes: at most 1 each",
		},
		"a node is updated too": {
			func(run *report.Run) { hold(run).Requests["update nodes"] = 1 },
			"flip, 100 nodes, 1 rule, hold: readygate sent 101 patches of nodes for 100 changes: at most 1 each",
		},
		"a change is not made": {
			func(run *report.Run) { hold(run).Requests["patch nodes"] = 99 },
			"flip, 100 nodes, 1 rule, hold: readygate sent only 99 patches of nodes for 100 changes: 1 each",
		},
		"the benchmark counted more changes than nodes": {
			func(run *report.Run) { hold(run).Extra = map[string]float64{"changes": 161} },
			"flip, 100 nodes, 1 rule, hold: readygate sent only 100 patches of nodes for 161 changes: 1 each",
		},
		"more is sent again than was throttled": {
			func(run *report.Run) { run.Results[busy].Phases[0].Requests["patch nodes"] = 146 },
			"busy, 100 nodes, 1 rule, release: readygate sent 146 patches of nodes for 100 changes: at most 1 each",
		},
		"a change has two events": {
			func(run *report.Run) { hold(run).Requests["patch events"] = 1 },
			"flip, 100 nodes, 1 rule, hold: readygate sent 101 events for 100 changes: at most 1 each",
		},
		"status is written too often": {
			func(run *report.Run) { hold(run).Requests["update nodereadinessrules/status"] = 1 },
			"flip, 100 nodes, 1 rule, hold: readygate wrote status 5 times: at most 4 times, 1 a second for each rule and 2",
		},
		"too many requests at the same time": {
			func(run *report.Run) {
				run.Results[busy].Phases[0].Extra = map[string]float64{"changes": 100, "most under way": 21}
			},
			"busy, 100 nodes, 1 rule, release: readygate had 21 requests under way at the same time: at most 20",
		},
		"work is left": {
			func(run *report.Run) { hold(run).Left = map[string]int{"patch nodes": 2, "create events": 1} },
			"flip, 100 nodes, 1 rule, hold: readygate had work left after quiet: create events (once) and patch nodes (2 times)",
		},
		"etcd gets too much": {
			func(run *report.Run) { hold(run).EtcdBytes = 3_900_000 },
			"flip, 100 nodes, 1 rule, hold: readygate brought 2.2 MiB into etcd, status aside, 1.55× the 1.4 MiB of the floor: at most 1.50×",
		},
		"a birth has two events": {
			func(run *report.Run) { run.Results[join].Phases[0].Requests["create events"] = 201 },
			"join, 100 nodes, 1 rule, join: readygate sent 201 events for 200 changes: at most 1 each",
		},
		"a birth is written": {
			func(run *report.Run) { run.Results[join].Phases[0].Requests["patch nodes"] = 101 },
			"join, 100 nodes, 1 rule, join: readygate sent 101 patches of nodes for 100 changes: at most 1 each",
		},
		"a node is born without the taint": {
			func(run *report.Run) { run.Results[join].Phases[0].Extra["born without the taint"] = 2 },
			"join, 100 nodes, 1 rule, join: readygate let 2 nodes be born without the taint: none",
		},
		"a rule grows": {
			func(run *report.Run) { run.Results[ours].StatusBytes = 64<<10 + 1024 },
			"flip, 100 nodes, 1 rule: readygate made a rule of 65.0 KiB: at most 64 KiB",
		},
		"something is written while nothing happens": {
			func(run *report.Run) { run.Results[steady].Phases[0].Requests["patch nodereadinessrules/status"] = 1 },
			"steady, 100 nodes, 1 rule, steady: readygate wrote once while nothing changed: never",
		},
		"a restart wastes patches": {
			func(run *report.Run) { run.Results[restart].Phases[0].Extra["wasted patches"] = 3 },
			"restart, 100 nodes, 1 rule, restart: readygate wasted 3 patches after its restart: none",
		},
		"nobody counted wasted patches": {
			func(run *report.Run) { delete(run.Results[restart].Phases[0].Extra, "wasted patches") },
			`restart, 100 nodes, 1 rule, restart: readygate was restarted, and the run does not say how many patches were wasted: set Extra["wasted patches"]`,
		},
		"it did not finish": {
			func(run *report.Run) { run.Results[ours].Problem = "it crashed" },
			"flip, 100 nodes, 1 rule: readygate did not finish: it crashed",
		},
		"there are no phases": {
			func(run *report.Run) { run.Results[steady].Phases = nil },
			"steady, 100 nodes, 1 rule: readygate has no phase: nothing was checked",
		},
		"nothing was run": {
			func(run *report.Run) { run.Results = nil },
			"the run has no result of readygate: nothing was checked",
		},
		"the load was not measured alone": {
			func(run *report.Run) { run.Results = slices.Delete(run.Results, nobody, nobody+1) },
			"bytes into etcd were compared nowhere: measure floor and nobody in the same run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := good()
			test.breaks(&run)
			if problems := report.Check(run); len(problems) != 1 || problems[0] != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(problems, "\n"), test.want)
			}
		})
	}
}

func TestCheckNeverAsksHowLongAnythingTook(t *testing.T) {
	run := good()
	for i := range run.Results {
		for j := range run.Results[i].Phases {
			phase := &run.Results[i].Phases[j]
			phase.Took, phase.Quiet, phase.CPU, phase.LeftCPU = 100*phase.Took, 100*phase.Quiet, time.Hour, time.Hour
			phase.Latency = report.Quantiles{Count: 100, P50: time.Hour, P90: time.Hour, P99: time.Hour, Max: time.Hour}
		}
	}
	if problems := report.Check(run); problems != nil {
		t.Errorf("got %q", problems)
	}
}

func TestOthersAreNotChecked(t *testing.T) {
	run := good()
	other := run.Results[ours]
	other.Subject, other.StatusBytes, other.Problem = "other", 1<<20, "it crashed"
	run.Results = append(run.Results, other)
	if problems := report.Check(run); problems != nil {
		t.Errorf("got %q", problems)
	}
}
