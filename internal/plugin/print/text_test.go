package print_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

// compare fails unless the lines equal the text without its first and last line break.
func compare(t *testing.T, got print.Lines, want string) {
	t.Helper()
	if joined := strings.Join(got, "\n"); joined != strings.Trim(want, "\n") {
		t.Errorf("got:\n%s\n\nwant:%s", joined, want)
	}
}

var rules = []view.Rule{
	{
		Name: "network", Created: ago(180), Taint: "readiness.k8s.io/NetworkReady=pending:NoSchedule", Mode: v1alpha1.EnforcementModeBootstrapOnly,
		Requirements: []string{"example.com/NetworkReady=True", "example.com/DNSReady=True"}, Selector: "example.com/pool=workers",
		Standing: v1alpha1.ReasonEnforced, Message: "all is well", AtCreation: v1alpha1.ReasonPolicyActive,
		Count: view.Count{Selected: 5, Held: 2, Released: 3, Blocked: map[string]int{"example.com/NetworkReady": 2, "example.com/DNSReady": 1}},
	},
	{
		Name: "gpu", Created: ago(5), Taint: "readiness.k8s.io/NetworkReady:NoSchedule", Mode: v1alpha1.EnforcementModeContinuous,
		AnyOf: true, Requirements: []string{"a=True", "b=True"}, Selector: "gpu=yes",
		Standing: v1alpha1.ReasonConflict, Message: `rule "network" is older`, AtCreationMessage: "not tainted at creation", AtCreation: v1alpha1.ReasonNotAccepted,
		Refused: []view.Refusal{{Node: "w-1", Message: "policy says no"}},
	},
}

func TestRules(t *testing.T) {
	compare(t, print.Rules(rules, false, noon), `
NAME      TAINT                                              MODE             SELECTED   HELD   RELEASED   STANDING   AT-CREATION    AGE
network   readiness.k8s.io/NetworkReady=pending:NoSchedule   bootstrap-only   5          2      3          Enforced   PolicyActive   3h
gpu       readiness.k8s.io/NetworkReady:NoSchedule           continuous       0          0      0          Conflict   NotAccepted    5m

gpu is Conflict: rule "network" is older
gpu cannot write node w-1: policy says no
`)
	wide := strings.Join(print.Rules(rules, true, noon), "\n")
	for _, words := range []string{
		"REQUIREMENTS", "example.com/NetworkReady=True,example.com/DNSReady=True   example.com/pool=workers   example.com/DNSReady (1),example.com/NetworkReady (2)",
		"a=True or b=True", "gpu, at creation: not tainted at creation",
	} {
		if !strings.Contains(wide, words) {
			t.Errorf("%q is missing in\n%s", words, wide)
		}
	}
	if none := print.Rules(nil, false, noon); len(none) != 1 || !strings.Contains(none[0], "kubectl apply") {
		t.Errorf("no rules: %q", none)
	}
}

var nodes = []view.Node{
	{
		Name: "w-1", Created: ago(60), State: noderule.Held, Since: ago(20), Settled: true, Ready: corev1.ConditionTrue, Unschedulable: true, OtherTaints: []string{"a=b:NoSchedule", "c:NoExecute"},
		Rules: []view.Standing{
			{Rule: "network", State: noderule.Held, Held: true, Missing: []view.Missing{{Type: "example.com/NetworkReady", Current: corev1.ConditionUnknown, Absent: true}, {Type: "example.com/DNSReady", Current: corev1.ConditionFalse}}},
			{Rule: "gpu", State: noderule.Held, Held: true, Missing: []view.Missing{{Type: "GPU", Current: corev1.ConditionFalse}}},
			{Rule: "trial", State: noderule.Held, Preview: true, Missing: []view.Missing{{Type: "Trial", Absent: true}}},
		},
	},
	{Name: "w-2", Created: ago(60), State: noderule.Held, Settled: true, Ready: corev1.ConditionFalse, Rules: []view.Standing{{Rule: "network", State: noderule.Held, Held: true}}},
	{Name: "w-3", Created: ago(1), State: noderule.Released, Ready: corev1.ConditionTrue},
	{Name: "w-4", Created: ago(1), State: noderule.NotSelected, Settled: true, Ready: corev1.ConditionUnknown},
}

func TestNodes(t *testing.T) {
	compare(t, print.Nodes(nodes, true, noon), `
NAME   STATE                HELD FOR   AGE   HELD BY       MISSING                                                                                 READY             OTHER TAINTS
w-1    Held                 20m        60m   network,gpu   example.com/NetworkReady is not reported, example.com/DNSReady is False, GPU is False   True (cordoned)   a=b:NoSchedule,c:NoExecute
w-2    Held                 unknown    60m   network       -                                                                                       False             -
w-3    Released, changing   -          60s   -             -                                                                                       True              -
w-4    NotSelected          -          60s   -             -                                                                                       Unknown           -
`)
}

func TestOneLinePerChange(t *testing.T) {
	for i, want := range []string{
		"12:00:00 w-1 Held by network, gpu: example.com/NetworkReady is not reported, example.com/DNSReady is False, GPU is False",
		"12:00:00 w-2 Held by network",
		"12:00:00 w-3 Released, changing",
		"12:00:00 w-4 NotSelected",
	} {
		if got := print.Change(nodes[i], noon); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	if got := print.Gone("w-1", noon); got != "12:00:00 w-1 is gone" {
		t.Errorf("got %q", got)
	}
	if got := print.Tally(nodes); got != "4 nodes: 2 held, 1 released, 1 not selected" {
		t.Errorf("got %q", got)
	}
}

func TestFindings(t *testing.T) {
	compare(t, print.Findings(&lint.Report{Objects: 3, Judged: 1, Findings: []lint.Finding{
		{Severity: lint.Error, File: "a.yaml", Message: "is not valid YAML"},
		{Severity: lint.Warning, File: "b.yaml", Object: "NodeReadinessRule/network", Field: "spec.taint.effect", Message: "NoExecute evicts", Do: "use NoSchedule"},
	}}), `
error: a.yaml: is not valid YAML
warning: b.yaml NodeReadinessRule/network spec.taint.effect: NoExecute evicts
    use NoSchedule

1 rule in 3 objects: 1 error, 1 warning
`)
	if got := print.Findings(&lint.Report{}); !strings.Contains(got[0], "0 rules in 0 objects: 0 errors, 0 warnings. No NodeReadinessRule or PodReadinessRule found") {
		t.Errorf("got %q", got)
	}
}
