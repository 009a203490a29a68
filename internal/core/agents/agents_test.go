package agents_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/core/podrule"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func lease(renewed time.Time, version, report string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: agents.Name("n1"), ResourceVersion: version, Labels: agents.Labels(), Annotations: map[string]string{agents.ReportAnnotation: report}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

func TestNodeOfReturnsTheNodeOfALease(t *testing.T) {
	l := lease(noon, "1", "")
	if node, ok := agents.NodeOf(l); !ok || node != "n1" {
		t.Errorf("it is of %q, %v", node, ok)
	}
	l.Labels = nil
	if node, ok := agents.NodeOf(l); ok {
		t.Errorf("a Lease of another component is of node %q", node)
	}
}

// What is reported is read as it was counted, but for what does not fit.
func TestAReportIsReadAsItWasWritten(t *testing.T) {
	tally := podrule.Tally{Gated: 9, Open: 1, Waiting: 8, Late: 2, LatchClosed: 3, Ungated: 1, Without: []podrule.Listed{{Namespace: "shop", Name: "old", Why: "older"}}}
	for range 8 {
		tally.Waits = append(tally.Waits, podrule.Listed{Namespace: "shop", Name: "web", Since: noon, Why: "waiting for policy"})
	}
	cut := tally
	cut.Cut(agents.Listed)
	data, err := json.Marshal(agents.Report{Rules: map[types.UID]agents.RuleReport{"u": {Generation: 3, Tally: cut}}})
	if err != nil {
		t.Fatal(err)
	}
	about := agents.ReportOf(lease(noon, "1", string(data))).Rules["u"]
	got := about.Tally
	if about.Generation != 3 || got.Gated != 9 || got.Open != 1 || got.Waiting != 8 || got.Late != 2 || got.LatchClosed != 3 || got.Ungated != 1 {
		t.Errorf("it is read as %+v", about)
	}
	if len(got.Waits) != agents.Listed || got.Waits[0] != tally.Waits[0] || len(got.Without) != 1 {
		t.Errorf("it lists %+v and %+v", got.Waits, got.Without)
	}
}

// The report of an agent counts for its node, within bounds.
func TestAHostileReportIsBounded(t *testing.T) {
	pod := podrule.Listed{Namespace: "shop", Name: strings.Repeat("x", 300)}
	data, err := json.Marshal(agents.Report{Rules: map[types.UID]agents.RuleReport{"u": {Tally: podrule.Tally{Gated: -5, Open: 1 << 40, Waits: []podrule.Listed{pod, {Namespace: "a/b", Name: "c"}, {Namespace: "shop", Name: "web"}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	about := agents.ReportOf(lease(noon, "1", string(data))).Rules["u"]
	if about.Gated != 0 || about.Open > 1e6 || len(about.Waits) != 1 || about.Waits[0].Name != "web" {
		t.Errorf("it is read as %+v", about)
	}
	if got := agents.ReportOf(lease(noon, "1", "no JSON")); got.Rules != nil {
		t.Errorf("what cannot be read reports %+v", got)
	}
}
