package main

import (
	"context"
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
)

func TestOptionsThatCannotWorkAreRejected(t *testing.T) {
	for _, tc := range []struct {
		options options
		want    string
	}{
		{options{plan: "huge"}, "must be full"},
		{options{nodes: 0, rules: 1, pairs: 1}, "at least 1"},
		{options{nodes: 1, rules: 1, pairs: 0}, "at least 1"},
	} {
		if _, err := tc.options.lots(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: got %v, want %q", tc.options, err, tc.want)
		}
	}
}

// The budgets are defined for these sizes, and for medians of at least 5 pairs.
func TestTheFullPlanMeasuresWhatTheBudgetsNeed(t *testing.T) {
	for _, want := range []size{{1000, 1}, {1000, 5}, {5000, 1}, {5000, 5}} {
		if !slices.ContainsFunc(full(), func(l lot) bool { return l.size == want && l.pairs >= 5 }) {
			t.Errorf("%+v is not measured with 5 pairs", want)
		}
		if !slices.ContainsFunc(full(), func(l lot) bool { return l.Nodes == want.Nodes && l.loadOnly }) {
			t.Errorf("the load of %d nodes is not measured alone", want.Nodes)
		}
	}
	for name, plan := range map[string][]lot{"full": full(), "short": short()} {
		for phase, is := range map[string]func(lot) bool{
			"joins": func(l lot) bool { return l.join }, "restarts": func(l lot) bool { return l.restart }, "measures the load": func(l lot) bool { return l.loadOnly },
		} {
			if !slices.ContainsFunc(plan, is) {
				t.Errorf("no lot of the plan %s %s", name, phase)
			}
		}
	}
}

func TestTheRecorderSharesNoConnection(t *testing.T) {
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
		t.Error("equal configurations do not share connections, so this test proves nothing")
	}
	if transport(config) == transport(ownConnection(config)) {
		t.Error("the connection is shared")
	}
}

func TestTheRequestLogCountsNewRequestsOfOneUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	line := func(verb, resource, code, second string) string {
		return strings.NewReplacer("VERB", verb, "RES", resource, "CODE", code, "SEC", second).Replace(
			`{"verb":"VERB","user":{"username":"me"},"objectRef":{"resource":"RES"},"responseStatus":{"code":CODE},"requestReceivedTimestamp":"2026-01-01T00:00:0SEC.000000Z"}` + "\n")
	}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // the next read would miss it
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	l := &requestLog{path: path, user: "me", requests: map[string]int{}}
	write(line("patch", "nodes", "200", "1") + line("patch", "nodes", "429", "9") + line("patch", "leases", "200", "9") +
		strings.ReplaceAll(line("patch", "nodes", "200", "8"), `"me"`, `"other"`))
	half := line("create", "events", "201", "2")
	write(half[:40])
	if err := l.read(); err != nil {
		t.Fatal(err)
	}
	if l.requests["patch nodes"] != 1 || len(l.requests) != 1 || l.written.Second() != 1 {
		t.Errorf("got %v, last write at %v", l.requests, l.written)
	}
	write(half[40:] + line("list", "nodes", "200", "7"))
	if err := l.reset(); err != nil || len(l.requests) != 0 || l.written.Second() != 2 {
		t.Errorf("after a reset: %v, last write at %v, %v", l.requests, l.written, err)
	}
	write(half)
	if err := l.read(); err != nil || l.requests["create events"] != 1 {
		t.Errorf("got %v, %v", l.requests, err)
	}
}

func TestCountersAreSummedOverTheirLabels(t *testing.T) {
	text := "# HELP a x\na{b=\"c d\"} 1\na{b=\"e\"} 2e3\nab 7\n"
	if got, err := sum(text, "a"); err != nil || got != 2001 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := sum(text, "gone"); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

func TestTheRecorderRecordsWhenTheLastTaintChanged(t *testing.T) {
	w := &recorder{taints: []string{"a", "b"}, nodes: map[string]*record{}}
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
	see(1, corev1.ConditionTrue, "a", "b")
	see(2, corev1.ConditionTrue, "b")
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := w.await(soon, []string{"n"}, false); err == nil {
		t.Error("a node with one taint left counts as released")
	}
	see(5, corev1.ConditionTrue, "other")
	if last, err := w.await(t.Context(), []string{"n"}, false); err != nil || !last.Equal(at.Add(5*time.Second)) {
		t.Errorf("%v, last at %v", err, last)
	}
	if got := w.latencies([]string{"n"}); len(got) != 1 || got[0] != 4*time.Second {
		t.Errorf("latencies %v", got)
	}
	if w.untainted() != 0 {
		t.Error("a node that was created with its taints counts as untainted")
	}
}
