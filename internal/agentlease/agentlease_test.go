package agentlease_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/agentlease"
	"github.com/readygate/readygate/internal/gating"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func lease(renewed time.Time, version, report string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: agentlease.Name("n1"), ResourceVersion: version, Labels: agentlease.Labels(), Annotations: map[string]string{agentlease.ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

func TestTheLeaseTellsItsNode(t *testing.T) {
	l := lease(noon, "1", "")
	if node, ok := agentlease.NodeOf(l); !ok || node != "n1" {
		t.Errorf("it is of %q, %v", node, ok)
	}
	l.Labels = nil
	if node, ok := agentlease.NodeOf(l); ok {
		t.Errorf("a lease of somebody else is of %q", node)
	}
}

// What is reported is read as it was counted, but for what does not fit.
func TestAReportIsReadAsItWasWritten(t *testing.T) {
	tally := gating.Tally{Gated: 9, Open: 1, Waiting: 8, Late: 2, LatchClosed: 3, Ungated: 1, Without: []gating.Listed{{Namespace: "shop", Name: "old", Why: "older"}}}
	for range 8 {
		tally.Waits = append(tally.Waits, gating.Listed{Namespace: "shop", Name: "web", Since: noon, Why: "waiting for policy"})
	}
	data, err := json.Marshal(agentlease.Report{Rules: map[types.UID]agentlease.RuleReport{"u": agentlease.ReportRule(&gating.Rule{Generation: 3}, &tally)}})
	if err != nil {
		t.Fatal(err)
	}
	about := agentlease.ReportOf(lease(noon, "1", string(data))).Rules["u"]
	got := about.Tally()
	if about.Generation != 3 || got.Gated != 9 || got.Open != 1 || got.Waiting != 8 || got.Late != 2 || got.LatchClosed != 3 || got.Ungated != 1 {
		t.Errorf("it is read as %+v", about)
	}
	if len(got.Waits) != agentlease.Listed || got.Waits[0] != tally.Waits[0] || len(got.Without) != 1 {
		t.Errorf("it lists %+v and %+v", got.Waits, got.Without)
	}
}

// An agent is believed about its node, within bounds.
func TestAHostileReportIsBounded(t *testing.T) {
	pod := agentlease.Pod{Namespace: "shop", Name: strings.Repeat("x", 300)}
	data, err := json.Marshal(agentlease.Report{Rules: map[types.UID]agentlease.RuleReport{"u": {Gated: -5, Open: 1 << 40, Waits: []agentlease.Pod{pod, {Namespace: "a/b", Name: "c"}, {Namespace: "shop", Name: "web"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	about := agentlease.ReportOf(lease(noon, "1", string(data))).Rules["u"]
	if about.Gated != 0 || about.Open > 1e6 || len(about.Waits) != 1 || about.Waits[0].Name != "web" {
		t.Errorf("it is read as %+v", about)
	}
	if got := agentlease.ReportOf(lease(noon, "1", "no JSON")); got.Rules != nil {
		t.Errorf("what cannot be read reports %+v", got)
	}
}

// Whether an agent is alive is told by the watcher's own clock.
func TestAnAgentIsAliveWhileItsLeaseChanges(t *testing.T) {
	var w agentlease.Watcher
	behind := noon.Add(-9 * time.Minute) // its clock
	see := func(want bool, now time.Time, renewed time.Time, what string) {
		t.Helper()
		if _, alive := w.See(lease(renewed, renewed.String(), ""), now); alive != want {
			t.Errorf("%s: alive is %v", what, alive)
		}
	}
	see(true, noon, behind, "when it is first seen")
	see(true, noon.Add(59*time.Second), behind, "a while after that")
	see(false, noon.Add(61*time.Second), behind, "when it has not changed for long")
	see(true, noon.Add(70*time.Second), behind.Add(time.Minute), "when it has changed")
	see(true, noon.Add(time.Hour), behind.Add(time.Hour), "much later, as it goes on")
	see(false, noon.Add(2*time.Hour), behind.Add(time.Hour), "when it has ended")
}

func TestAnAncientLeaseIsOfNobody(t *testing.T) {
	var w agentlease.Watcher
	if _, alive := w.See(lease(noon.Add(-time.Hour), "1", ""), noon); alive {
		t.Error("it is alive")
	}
}

// A report is read once for each version of its lease.
func TestAReportIsRemembered(t *testing.T) {
	var w agentlease.Watcher
	w.See(lease(noon, "1", `{"version":"a"}`), noon)
	if got, _ := w.See(lease(noon, "1", `{"version":"b"}`), noon); got.Version != "a" {
		t.Errorf("the same lease is read again: %+v", got)
	}
	if got, _ := w.See(lease(noon, "2", `{"version":"b"}`), noon); got.Version != "b" {
		t.Errorf("a new one is not: %+v", got)
	}
}
