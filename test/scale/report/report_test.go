package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/test/scale/report"
)

// flip is a release of 1,000 nodes by one rule, within all limits.
func flip(subject string, pair int, took, p99 time.Duration, etcd int64) report.Result {
	r := report.Result{
		Phase: report.Release, Subject: subject, Nodes: 1000, Rules: 1, Pair: pair, Changes: 1000,
		Took: took, P99: p99, EtcdBytes: etcd, Peak: 50 << 20, Requests: map[string]int{"patch nodes": 1000},
	}
	if subject == report.Ours {
		r.Requests["create events"], r.Requests["patch nodereadinessrules/status"] = 1000, 4
	}
	return r
}

// good is a run within all limits, with five pairs of 1.00 to 1.20 times the floor.
func good() report.Run {
	run := report.Run{Version: "v1", Results: []report.Result{flip(report.LoadOnly, 1, time.Second, 0, 10_000)}}
	for pair := range 5 {
		run.Results = append(run.Results,
			flip(report.Ours, pair+1, 2*time.Second+time.Duration(pair)*100*time.Millisecond, 300*time.Millisecond, 21_000),
			flip(report.Floor, pair+1, 2*time.Second, 250*time.Millisecond, 20_000))
	}
	run.Results = append(run.Results,
		report.Result{Phase: report.Steady, Subject: report.Ours, Nodes: 1000, Rules: 1, Pair: 1, Took: time.Minute, Requests: map[string]int{"watch nodes": 1}},
		report.Result{Phase: report.Join, Subject: report.Ours, Nodes: 1000, Rules: 1, Pair: 1, Changes: 1000, Created: 1000, Took: 30 * time.Second,
			Requests: map[string]int{"patch nodes": 1000, "create events": 2000, "patch nodereadinessrules/status": 32}})
	return run
}

const (
	firstOfOurs = 1
	steady      = 11
	join        = 12
)

func TestCheck(t *testing.T) {
	if problems := report.Check(good()); problems != nil {
		t.Fatalf("a good run has problems: %q", problems)
	}
	requests := func(i int, request string, n int) func(*report.Run) {
		return func(run *report.Run) { run.Results[i].Requests[request] = n }
	}
	for name, tc := range map[string]struct {
		spoil func(*report.Run)
		want  string
	}{
		"too many PATCHes":             {requests(firstOfOurs, "patch nodes", 1001), "1001 PATCHes of nodes for 1000 changes"},
		"too few PATCHes":              {requests(firstOfOurs, "patch nodes", 999), "999 PATCHes of nodes for 1000 changes"},
		"another verb":                 {requests(firstOfOurs, "update nodes", 1), "1001 PATCHes"},
		"too many events":              {requests(firstOfOurs, "patch events", 1), "1001 events for 1000 changes"},
		"too many events of new nodes": {requests(join, "create events", 2001), "2001 events"},
		"too much status":              {requests(join, "patch nodereadinessrules/status", 33), "33 status writes, limit is 32"},
		"a write while steady":         {requests(steady, "update configmaps", 1), "1 writes while nothing changed"},
		"work left": {func(run *report.Run) {
			run.Results[firstOfOurs].Left = map[string]int{"watch nodes": 3, "get nodes": 2}
		},
			"2 requests after the manager was quiet"},
		"created without the taint": {func(run *report.Run) { run.Results[join].Untainted = 2 }, "2 nodes were created without the taint"},
		"not finished":              {func(run *report.Run) { run.Results[steady].Problem = "it ended" }, "did not finish: it ended"},
		"too many bytes": {func(run *report.Run) {
			for i := range run.Results {
				if run.Results[i].Subject == report.Ours {
					run.Results[i].EtcdBytes = 26_000
				}
			}
		}, "bytes into etcd are 1.60× those of the floor"},
		"the load was not measured":  {func(run *report.Run) { run.Results = run.Results[1:] }, "bytes into etcd were not compared"},
		"readygate was not measured": {func(run *report.Run) { run.Results = run.Results[:1] }, "no phase of readygate was measured"},
	} {
		t.Run(name, func(t *testing.T) {
			run := good()
			tc.spoil(&run)
			if got := strings.Join(report.Check(run), "\n"); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// line returns the table row that begins with these words.
func line(t *testing.T, page, begin string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| "+begin) {
			return line
		}
	}
	t.Fatalf("no line begins with %q:\n%s", begin, page)
	return ""
}

func TestBudgets(t *testing.T) {
	change := func(change func(r *report.Result)) func(*report.Run) {
		return func(run *report.Run) {
			for i := range run.Results {
				if run.Results[i].Subject == report.Ours {
					change(&run.Results[i])
				}
			}
		}
	}
	same := func(*report.Run) {}
	for _, tc := range []struct {
		budget string
		change func(*report.Run)
		want   string
	}{
		{"all nodes flip", same, "| 1.10× |  | met |"},
		{"all nodes flip", change(func(r *report.Result) { r.Took += 200 * time.Millisecond }), "| 1.20× |  | **missed** |"},
		{"all nodes flip", func(run *report.Run) { run.Results = run.Results[:9] }, "| 1.08× |  | fewer than 5 pairs |"},
		{"condition → taint", same, "| 1.20× |  | met |"},
		{"condition → taint", change(func(r *report.Result) { r.P99 = 400 * time.Millisecond }), "| 1.60× |  | **missed** |"},
		{"PATCHes", same, "| 1 |  | met |"},
		{"events", change(func(r *report.Result) { r.Requests["create events"] = 3000 }), "| 3 |  | **missed** |"},
		{"status", change(func(r *report.Result) { r.Requests["patch nodereadinessrules/status"] = 91 }), "| 45.00/s |  | **missed** |"},
		{"bytes", same, "| 1.10× |  | met |"},
		{"memory", same, "| 50.0 MiB |  | met |"},
		{"memory", change(func(r *report.Result) { r.Peak = 101 << 20 }), "| 101.0 MiB |  | **missed** |"},
		{"quiet", same, "| 0.00/s |  | met |"},
		{"quiet", func(run *report.Run) { run.Results = nil }, "|  |  | not measured |"},
	} {
		run := good()
		tc.change(&run)
		if got := line(t, report.Tables(run), tc.budget); !strings.Contains(got, tc.want) {
			t.Errorf("got  %swant %s", got, tc.want)
		}
	}
}

func TestPage(t *testing.T) {
	run := good()
	run.Note = "A remark."
	page := string(report.Page(run, "How it is measured.\n"))
	for _, want := range []string{
		"`v1`, measured on", "A remark.", "<summary>Method</summary>\n\nHow it is measured.\n",
		"| 1,000 | 1 | release | 1.00 1.05 1.10 1.15 1.20 | 1.10× | 300 ms | 250 ms | 1.20× |  | 1.10× |  |",
		"| 1,000 | 1 | join | readygate | 30.0 s |  | 0 ms | 0.0 MiB | 1,000 | 32 | 2,000 | 0 | 0 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
}
