package report_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// line is the line of the page's table of budgets that begins so.
func line(t *testing.T, run report.Run, begin string) string {
	t.Helper()
	for line := range strings.Lines(string(report.Page(run, nil))) {
		if strings.HasPrefix(line, "| "+begin) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no line begins with %q", begin)
	return ""
}

// section is the part of the page with the numbers of a scenario.
func section(t *testing.T, run report.Run, title string) string {
	t.Helper()
	_, text, found := strings.Cut(string(report.Page(run, nil)), "\n### "+title+"\n")
	if !found {
		t.Fatalf("no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n##")
	return text
}

// find is a result of ours.
func find(t *testing.T, run *report.Run, scenario string, nodes, rules int) *report.Result {
	t.Helper()
	at := slices.IndexFunc(run.Results, func(r report.Result) bool {
		return r.Scenario == scenario && r.Subject == report.Ours && r.Nodes == nodes && r.Rules == rules
	})
	if at < 0 {
		t.Fatalf("no %s with %d nodes", scenario, nodes)
	}
	return &run.Results[at]
}

func TestTheFirstLineSaysThatThePageIsGenerated(t *testing.T) {
	const first = "<!-- Generated from performance.json by make generate. Do not edit. -->\n"
	if page := report.Page(report.Run{}, nil); !bytes.HasPrefix(page, []byte(first)) {
		t.Errorf("got %s", page)
	}
}

func TestTheSameRunMakesTheSamePage(t *testing.T) {
	first := report.Page(madeUp(t), notes)
	for range 20 {
		if !bytes.Equal(report.Page(madeUp(t), notes), first) {
			t.Fatal("two pages of one run differ")
		}
	}
}

func TestABudgetThatIsMissedIsSaidInBold(t *testing.T) {
	const time1000 = "all nodes flip, time"
	for name, test := range map[string]struct {
		breaks func(t *testing.T, run *report.Run)
		begin  string
		want   string
	}{
		"time": {
			func(t *testing.T, run *report.Run) { find(t, run, report.Flip, 1000, 1).Phases[0].Took = time.Minute },
			time1000, "| **missed** at 1,000 |",
		},
		"a flip that was not finished": {
			func(t *testing.T, run *report.Run) { find(t, run, report.Flip, 5000, 1).Problem = "it crashed" },
			time1000, "| **not finished** | **missed** at 5,000 |",
		},
		"patches": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Join, 5000, 1).Phases[0].Requests["patch nodes"]++
			},
			"writes of a node", "| **missed** at 5,000 |",
		},
		"patches that were not sent": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Join, 5000, 1).Phases[0].Requests["patch nodes"] = 4000
			},
			"writes of a node", "| **0.8 (nodes join)** | **missed** at 5,000 |",
		},
		"events": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Flip, 5000, 5).Phases[0].Requests["create events"] = 10000
			},
			"events", "| **2 (5 rules)** | **missed** at 5,000 |",
		},
		"status": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Delete, 5000, 1).Phases[0].Requests["patch nodereadinessrules/status"] = 900
			},
			"writes of the status", "(a rule is deleted)** | **missed** at 5,000 |",
		},
		"bytes": {
			func(t *testing.T, run *report.Run) { find(t, run, report.Slow, 1000, 1).Phases[1].EtcdBytes *= 2 },
			"bytes into etcd", "(a slow API server)** |",
		},
		"memory": {
			func(*testing.T, *report.Run) {},
			"peak memory", "MiB (100 rules)** | **missed** |",
		},
		"quiet": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Steady, 5000, 1).Phases[0].Requests["patch nodes"] = 1
			},
			"quiet cluster", "|  | **1 write in 120 s** | **missed** |",
		},
		"work": {
			func(t *testing.T, run *report.Run) { find(t, run, report.Flip, 5000, 1).Phases[0].CPU *= 2 },
			"ten times the nodes", "| **missed** |",
		},
		"writes": {
			func(t *testing.T, run *report.Run) {
				find(t, run, report.Flip, 1000, 10).Phases[0].Requests["create events"] = 5000
			},
			"ten times the rules", "| **missed** at 1,000 |",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := madeUp(t)
			test.breaks(t, &run)
			if got := line(t, run, test.begin); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s in it", got, test.want)
			}
			if page := string(report.Page(run, nil)); !strings.Contains(page, "missed**: ") {
				t.Error("the page does not begin with it")
			}
		})
	}
}

// Of several runs the median's CPU counts, not that of the fastest.
func TestWorkIsThatOfTheMedianRun(t *testing.T) {
	run := madeUp(t)
	large := find(t, &run, report.Flip, 5000, 1)
	large.Runs = 3
	for i := range large.Phases {
		p := &large.Phases[i]
		once := report.Attempt{Took: p.Took, CPU: p.CPU, Work: p.Work}
		slow := report.Attempt{Took: 2 * p.Took, CPU: 2 * p.CPU, Work: p.Work}
		p.Attempts = []report.Attempt{once, slow, slow}
	}
	if got := line(t, run, "ten times the nodes"); !strings.HasSuffix(got, "| **missed** |") {
		t.Errorf("two of three runs used twice the CPU: got %s", got)
	}
	for i := range large.Phases {
		a := large.Phases[i].Attempts
		a[1] = a[0]
	}
	if got := line(t, run, "ten times the nodes"); !strings.HasSuffix(got, "| met |") {
		t.Errorf("one of three runs used twice the CPU: got %s", got)
	}
}

func TestABudgetIsNotMetByWhatWasNotMeasured(t *testing.T) {
	run := madeUp(t)
	run.Results = slices.DeleteFunc(run.Results, func(r report.Result) bool {
		return r.Scenario != report.Flip || r.Subject == report.Nobody || r.Nodes == 5000
	})
	for begin, want := range map[string]string{
		"all nodes flip, time": "met at 1,000, not measured at 5,000 |",
		"bytes into etcd":      "| not measured | not measured | not measured |",
		"peak memory":          "| not measured | not measured |",
		"quiet cluster":        "| not measured | not measured | not measured |",
		"ten times the nodes":  "| not measured | not measured |",
	} {
		if got := line(t, run, begin); !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want %s at its end", got, want)
		}
	}
	if page := string(report.Page(run, nil)); strings.Contains(page, "All budgets are met") || !strings.Contains(page, "not measured in full") {
		t.Error("the page claims more than was measured")
	}
}

func TestFiveRulesDoNotShowWhatTenWouldCost(t *testing.T) {
	run := madeUp(t)
	run.Results = slices.DeleteFunc(run.Results, func(r report.Result) bool { return r.Rules == 10 })
	if got := line(t, run, "ten times the rules"); !strings.HasSuffix(got, "| met as far as measured |") {
		t.Errorf("got %s", got)
	}
}

func TestTenRulesAreJudgedAtAnySize(t *testing.T) {
	run := madeUp(t)
	for i := range run.Results {
		if r := &run.Results[i]; r.Rules == 10 {
			r.Nodes, r.Phases[0].Requests["patch nodes"], r.Phases[1].Requests["patch nodes"] = 500, 500, 500
		}
	}
	if got := line(t, run, "ten times the rules"); !strings.Contains(got, "with 10 rules** | 1.01× with 5 rules | 1.01× with 5 rules | **missed** at 500 |") {
		t.Errorf("got %s", got)
	}
	ten := find(t, &run, report.Flip, 500, 10)
	for i := range ten.Phases {
		ten.Phases[i].Requests = find(t, &run, report.Flip, 500, 1).Phases[i].Requests
	}
	if got := line(t, run, "ten times the rules"); !strings.Contains(got, "| 1.00× with 10 rules | 1.01× with 5 rules | 1.01× with 5 rules | met |") {
		t.Errorf("got %s", got)
	}
}

func TestManyRulesAreComparedWithTheFloorOfOne(t *testing.T) {
	run := madeUp(t)
	run.Results = slices.DeleteFunc(run.Results, func(r report.Result) bool { return r.Scenario == report.Many && r.Subject != report.Ours })
	many := func() string {
		return section(t, run, "100 rules")
	}
	want := many()
	for _, r := range slices.Clone(run.Results) {
		if r.Scenario == report.Flip && r.Nodes == 5000 && (r.Subject == report.Floor || r.Subject == report.Nobody) {
			r.Rules, r.Phases = 5, slices.Clone(r.Phases)
			for i := range r.Phases {
				r.Phases[i].Took *= 2
				r.Phases[i].EtcdBytes *= 2
			}
			run.Results = append(run.Results, r)
		}
	}
	if got := many(); got != want || !strings.Contains(want, "1.06×") {
		t.Errorf("the floor of 5 rules counts:\n%s", got)
	}
}

func TestThePaceOfJoinsIsNoTimeOfAController(t *testing.T) {
	if got, head := section(t, madeUp(t), "Nodes join"), "| load | took | p50 |"; !strings.Contains(got, head) {
		t.Errorf("want %s in %s", head, got)
	}
}

func TestWithAllBudgetsMetThePageSaysSo(t *testing.T) {
	run := madeUp(t)
	for i := range run.Results {
		run.Results[i].Peak /= 2
	}
	for scenario, rules := range map[string]int{report.Steady: 1, report.Flip: 10} {
		nodes := map[string]int{report.Steady: 1000, report.Flip: 5000}[scenario]
		more := *find(t, &run, scenario, 6000-nodes, rules)
		more.Nodes = nodes
		more.Phases = slices.Clone(more.Phases)
		if scenario == report.Flip {
			more.Phases = find(t, &run, report.Flip, 5000, 5).Phases
		}
		run.Results = append(run.Results, more)
	}
	if page := string(report.Page(run, nil)); !strings.Contains(page, "\nAll budgets are met.\n") || strings.Contains(page, "missed") {
		t.Error(page[:3000])
	}
}

func TestARatioIsToAFloorThatDidNoMoreAndFinished(t *testing.T) {
	for name, change := range map[string]func(floor *report.Result){
		"another mode":          func(floor *report.Result) { floor.Mode = "bootstrap-only" },
		"another load":          func(floor *report.Result) { floor.Writers++ },
		"more rules than any":   func(floor *report.Result) { floor.Rules = 11 },
		"a floor that gave up":  func(floor *report.Result) { floor.Problem = "it crashed" },
		"another phase":         func(floor *report.Result) { floor.Phases = floor.Phases[:0] },
		"a floor without times": func(floor *report.Result) { floor.Phases = []report.Phase{{Name: "release"}, {Name: "hold"}} },
	} {
		t.Run(name, func(t *testing.T) {
			run := madeUp(t)
			for i := range run.Results {
				if r := &run.Results[i]; r.Subject == report.Floor && r.Nodes == 1000 && r.Scenario == report.Flip {
					change(r)
				}
			}
			if got := line(t, run, "all nodes flip, time"); !strings.Contains(got, "| ≤ 1.2 × floor | not measured |") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTheOrderOfResultsDoesNotMatter(t *testing.T) {
	run, reversed := madeUp(t), madeUp(t)
	slices.Reverse(reversed.Results)
	if !bytes.Equal(report.Page(run, notes), report.Page(reversed, notes)) {
		t.Error("the pages differ")
	}
	for kind, draw := range pictures {
		if !bytes.Equal(draw(run), draw(reversed)) {
			t.Errorf("%s differs", kind)
		}
	}
}

func TestBytesWithoutThoseOfTheLoadAloneAreMarked(t *testing.T) {
	run := madeUp(t)
	run.Results = slices.DeleteFunc(run.Results, func(r report.Result) bool { return r.Subject == report.Nobody })
	var table bytes.Buffer
	report.Table(&table, run)
	if !strings.Contains(table.String(), "MiB*") || !strings.Contains(table.String(), "*: bytes of the load included") {
		t.Errorf("got %s", table.String())
	}
}

func TestNotesAreInThePageAndTheirSectionsAreNotThereWithoutThem(t *testing.T) {
	with, without := string(report.Page(madeUp(t), notes)), string(report.Page(madeUp(t), nil))
	for _, text := range notes {
		if !strings.Contains(with, text) {
			t.Errorf("%q is missing", text)
		}
	}
	for _, title := range []string{"## Where it stops", "## How it is measured"} {
		if !strings.Contains(with, title) || strings.Contains(without, title) {
			t.Errorf("%q should be there with a note only", title)
		}
	}
}

func TestTheMemoryOfANodeIsThatOfTheSizeWithABudget(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes []int // in the order in which they were measured
		want  string
	}{
		"the budget's size was measured":     {[]int{500, 5000, 15000, 200}, "With 5,000 nodes the live heap"},
		"else the largest, whenever that is": {[]int{500, 2000, 200}, "With 2,000 nodes the live heap"},
	} {
		var run report.Run
		for _, nodes := range tc.nodes {
			r := flip(report.Ours, nil, 0)
			r.Nodes, r.Heap, r.HeapEmpty = nodes, int64(nodes)*5000, 1
			run.Add(r)
		}
		if page := string(report.Page(run, nil)); !strings.Contains(page, tc.want) {
			t.Errorf("%s: %q is missing in\n%s", name, tc.want, page)
		}
	}
}
