package main

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

func TestOptionsThatCannotWorkSayWhatWould(t *testing.T) {
	for name, tc := range map[string]struct {
		options options
		want    string
	}{
		"unknown plan":           {options{plan: "huge"}, "must be full"},
		"unknown scenario":       {options{scenarios: []string{"flop"}, nodes: []int{1}, rules: []int{1}}, `"flop", must be some of`},
		"join after another":     {options{scenarios: []string{report.Join, report.Flip}, nodes: []int{1}, rules: []int{1}}, "run it alone"},
		"no nodes":               {options{scenarios: []string{report.Flip}, nodes: []int{0}, rules: []int{1}}, "at least 1"},
		"unknown mode":           {options{scenarios: []string{report.Flip}, nodes: []int{1}, rules: []int{1}, mode: "sometimes"}, "continuous or bootstrap-only"},
		"controller without =":   {options{controllers: []string{"mine"}}, "NAME=COMMAND"},
		"controller is reserved": {options{controllers: []string{"floor=x"}}, "NAME=COMMAND"},
		"repeats below one":      {options{repeat: -1}, "must not be negative"},
		"append without a file":  {options{add: true}, "--append needs --out"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.options.mode == "" {
				tc.options.mode = "continuous"
			}
			if tc.options.writers == 0 {
				tc.options.writers = 1
			}
			if _, err := tc.options.lots(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestThePlansTogetherPlayEveryScenario(t *testing.T) {
	played := map[string]bool{}
	s := []subject{{name: report.Ours}, {name: report.Floor}}
	nobody := subject{name: report.Nobody}
	for _, l := range slices.Concat(full(s, nobody, 16, "continuous"), short(s, nobody, 16, "continuous")) {
		for _, name := range l.scenarios {
			played[name] = true
		}
		if l.pace == (pace{}) {
			t.Errorf("%v has no pace", l.scenarios)
		}
	}
	for _, name := range known() {
		if !played[name] {
			t.Errorf("%s is in no plan", name)
		}
	}
}

func names(subjects []subject) (all []string) {
	for _, s := range subjects {
		all = append(all, s.name)
	}
	return all
}

func TestTheSubjectsOfALotChangePlacesFromPairToPair(t *testing.T) {
	l := lot{subjects: []subject{{name: "a"}, {name: "b"}}}
	for pair, want := range map[int][]string{1: {"a", "b"}, 2: {"b", "a"}, 3: {"a", "b"}} {
		if got := names(l.order(pair)); !slices.Equal(got, want) {
			t.Errorf("pair %d: %v, want %v", pair, got, want)
		}
	}
}

func TestAPairThatWasDisturbedIsMeasuredAgainUpToThreeTimes(t *testing.T) {
	pair := []string{report.Nobody, report.Floor, report.Ours}
	for name, tc := range map[string]struct {
		subjects  []string
		tries     int // that are allowed
		done      int
		disturbed []string
		want      []string
	}{
		"once":                    {pair, 3, 1, []string{report.Flip}, []string{report.Flip}},
		"twice":                   {pair, 3, 2, []string{report.Flip, report.Flip}, []string{report.Flip}},
		"three times":             {pair, 3, 3, []string{report.Flip}, nil},
		"not at all":              {pair, 3, 1, nil, nil},
		"where only counts count": {pair, 0, 1, []string{report.Flip}, nil},
		"without a floor":         {[]string{report.Ours, "other"}, 3, 1, []string{report.Flip}, nil},
		"the floor alone":         {[]string{report.Nobody, report.Floor}, 3, 1, []string{report.Flip}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := lot{scenarios: []string{report.Create, report.Flip}, tries: tc.tries}
			for _, name := range tc.subjects {
				l.subjects = append(l.subjects, subject{name: name})
			}
			left := l.again(tc.done, tc.disturbed)
			if !slices.Equal(left.scenarios, tc.want) {
				t.Errorf("%v are left, want %v", left.scenarios, tc.want)
			}
			if slices.Contains(names(left.subjects), report.Nobody) {
				t.Error("the load is measured alone again")
			}
			if len(l.scenarios) != 2 || len(l.subjects) != len(tc.subjects) {
				t.Errorf("the next pair would be another one: %+v", l)
			}
		})
	}
}

// Only what ends as it began can be told twice in one world.
func TestOnlyFlipsAreToldSideBySide(t *testing.T) {
	flip := lot{scenarios: []string{report.Flip}, size: size{Nodes: 5000, Mode: "continuous"}, tries: report.Tries}
	if !flip.sideBySide() {
		t.Error("flips are not")
	}
	for name, change := range map[string]func(*lot){
		"more is told":             func(l *lot) { l.scenarios = []string{report.Flip, report.Delete} },
		"another scenario":         func(l *lot) { l.scenarios = []string{report.Create} },
		"too large":                func(l *lot) { l.size.Nodes = 15000 },
		"nodes stay released":      func(l *lot) { l.size.Mode = "bootstrap-only" },
		"nothing but counts count": func(l *lot) { l.tries = 0 },
	} {
		l := flip
		if change(&l); l.sideBySide() {
			t.Errorf("%s: they are", name)
		}
	}
}

// The bytes of the load are measured in the first pair.
func TestEveryPairHasASubjectButTheLoad(t *testing.T) {
	l := lot{scenarios: []string{report.Flip}, subjects: []subject{{name: report.Nobody}, {name: report.Ours}, {name: report.Floor}}, repeats: 3, before: 1}
	var played []string
	play := func(_ lot, _ context.Context, s subject, keep func(report.Result)) error {
		played = append(played, s.name)
		keep(report.Result{Subject: s.name})
		return nil
	}
	kept := 0
	if err := l.measureBy(t.Context(), play, func(report.Result) { kept++ }); err != nil {
		t.Fatal(err)
	}
	want := []string{report.Floor, report.Ours, report.Nobody, report.Ours, report.Floor, report.Floor, report.Ours}
	if !slices.Equal(played, want) || kept != len(want) {
		t.Errorf("played %v, want %v; %d results were kept", played, want, kept)
	}
}

func TestTheFullPlanMeasuresWhatIsComparedAndRepeatsOnlyFlips(t *testing.T) {
	type trial struct {
		scenario, subject string
		nodes, rules      int
	}
	times := map[trial]int{}
	for _, l := range full([]subject{{name: report.Floor}, {name: report.Ours}}, subject{name: report.Nobody}, 16, "continuous") {
		for _, s := range l.subjects {
			for _, scenario := range l.scenarios {
				times[trial{scenario, s.name, l.size.Nodes, l.size.Rules}] += max(1, l.repeats)
			}
		}
	}
	for _, s := range []string{report.Floor, report.Ours} {
		for at, want := range map[trial]int{
			{report.Flip, s, 500, 1}: 4, {report.Flip, s, 1000, 1}: 4, {report.Flip, s, 1000, 5}: 8,
			{report.Flip, s, 2000, 1}: 2, {report.Flip, s, 5000, 1}: 4, {report.Flip, s, 5000, 5}: 6, {report.Flip, s, 500, 10}: 2,
		} {
			if times[at] != want {
				t.Errorf("%+v: %d times, want %d", at, times[at], want)
			}
		}
	}
	for at, n := range times {
		alone := trial{report.Flip, report.Nobody, at.nodes, 1}
		if at.scenario == report.Flip && times[alone] != 1 {
			t.Errorf("the load of %+v is measured alone %d times", at, times[alone])
		}
		if at.scenario != report.Flip && n != 1 {
			t.Errorf("%+v: %d times", at, n)
		}
	}
}

func TestTheCommandThatIsPublishedHasNoPaths(t *testing.T) {
	cmd := newRunCommand()
	if err := cmd.ParseFlags([]string{"--plan=full", "--manager", "/home/me/manager", "--out=/tmp/x", "--controller", "other=/home/me/bin/other --kubeconfig {kubeconfig}",
		"--nodes", "5,10", "--check"}); err != nil {
		t.Fatal(err)
	}
	const want = "go run ./test/scale run --check --controller other=... --nodes 5,10 --plan full"
	if got := commandOf(cmd.Flags()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheWitnessSharesNoConnection(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	transport := func(c *rest.Config) http.RoundTripper {
		t.Helper()
		rt, err := rest.TransportFor(c)
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	if transport(config) != transport(rest.CopyConfig(config)) {
		t.Error("equal configurations do not share: the test shows nothing")
	}
	if transport(config) == transport(apart(config)) {
		t.Error("the connection is shared")
	}
}

func TestWhatAProxyRefusedIsAmongTheRequests(t *testing.T) {
	phase := report.Phase{Requests: map[string]int{"patch nodes": 100, "create events": 90}, Refused: map[string]int{"409": 1}}
	addRefused(&phase, map[string]int{"patch nodes": 40, "list nodes": 2})
	if !maps.Equal(phase.Requests, map[string]int{"patch nodes": 140, "create events": 90, "list nodes": 2}) || !maps.Equal(phase.Refused, map[string]int{"409": 1, "429": 42}) {
		t.Errorf("requests %v, refused %v", phase.Requests, phase.Refused)
	}
}

const auditLine = `{"verb":"VERB","user":{"username":"me"},"objectRef":{"resource":"RES"},"responseStatus":{"code":CODE},"requestReceivedTimestamp":"2026-01-01T00:00:0SEC.000000Z"}` + "\n"

func line(verb, resource, code, second string) string {
	return strings.NewReplacer("VERB", verb, "RES", resource, "CODE", code, "SEC", second).Replace(auditLine)
}

// A machine that stands still for a while is one look, however long it lasts.
func TestASubjectIsQuietAfterLooksThatSawNothingNew(t *testing.T) {
	began := time.Now()
	wrote := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	hush := hush{last: began}
	for range silence - 1 {
		if hush.look(began) {
			t.Fatal("quiet too early")
		}
	}
	if hush.look(wrote(60)) {
		t.Fatal("quiet, though it has written")
	}
	for look := range silence {
		if got, want := hush.look(wrote(60)), look == silence-1; got != want {
			t.Errorf("look %d: quiet is %t, want %t", look, got, want)
		}
	}
}

func TestTheLedgerCountsWhatIsNewAndWhose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // the next read would see it
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	l := newLedger(path, "me")
	write(line("patch", "nodes", "200", "1") + line("patch", "leases", "200", "9") + strings.ReplaceAll(line("patch", "nodes", "200", "8"), `"me"`, `"somebody"`))
	half := line("create", "events", "429", "2")
	write(half[:40])
	if err := l.read(); err != nil {
		t.Fatal(err)
	}
	if l.requests["patch nodes"] != 1 || len(l.requests) != 1 || l.written.Second() != 1 {
		t.Errorf("got %v, last at %v", l.requests, l.written)
	}
	write(half[40:] + line("list", "nodes", "200", "7"))
	if err := l.reset(); err != nil {
		t.Fatal(err)
	}
	if len(l.requests) != 0 || l.written.Second() != 2 {
		t.Errorf("after a reset: %v, last write at %v", l.requests, l.written)
	}
	write(half)
	if err := l.read(); err != nil {
		t.Fatal(err)
	}
	if l.requests["create events"] != 1 || l.refused["429"] != 1 {
		t.Errorf("got %v, refused %v", l.requests, l.refused)
	}
}

func TestALedgerSaysThatItsLogWasRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := newLedger(path, "me")
	write(line("patch", "nodes", "200", "1") + line("patch", "nodes", "200", "2"))
	if err := l.read(); err != nil {
		t.Fatal(err)
	}
	write(line("patch", "nodes", "200", "3"))
	if err := l.read(); err == nil || !strings.Contains(err.Error(), "rotated") {
		t.Errorf("got %v", err)
	}
}

func TestCountersAreSummedAndMustBeThere(t *testing.T) {
	text := "# HELP a x\na{b=\"c d\"} 1\na{b=\"e\"} 2e3\nab 7\n"
	if got, err := counters(strings.NewReader(text), "a"); err != nil || got[0] != 2001 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := counters(strings.NewReader(text), "a", "gone"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

func TestTheWitnessTellsWhenTheLastTaintChanged(t *testing.T) {
	w := &witness{taints: []string{"a", "b"}, nodes: map[string]*sight{}}
	at := time.Unix(0, 0)
	see := func(second int64, status corev1.ConditionStatus, taints ...string) {
		node := &corev1.Node{}
		node.Name = "n"
		node.Status.Conditions = []corev1.NodeCondition{{Type: testenv.Condition, Status: status}}
		for _, key := range taints {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		w.see(watch.Event{Type: watch.Modified, Object: node}, at.Add(time.Duration(second)*time.Second))
	}
	see(0, corev1.ConditionFalse, "a", "b")
	quest := w.expect([]string{"n"}, false)
	see(1, corev1.ConditionTrue, "a", "b")
	see(2, corev1.ConditionTrue, "b")
	if len(quest.missing) != 1 {
		t.Error("a node with one taint left is called released")
	}
	see(5, corev1.ConditionTrue, "other")
	if err := w.wait(t.Context(), quest, time.Second); err != nil || !quest.last.Equal(at.Add(5*time.Second)) {
		t.Errorf("%v, last at %v", err, quest.last)
	}
	if got := w.latencies([]string{"n"}); len(got) != 1 || got[0] != 4*time.Second {
		t.Errorf("latencies %v", got)
	}
	if w.bare() != 0 {
		t.Error("a node that came with its taints is called bare")
	}
}
