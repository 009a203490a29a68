package print_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

const gate = "networking.kubernetes.io/pod-network-ready"

var pods = view.Pods{
	Pods: []view.Pod{
		{
			Namespace: "shop", Name: "web-1", Node: "w-1", State: view.PodWaiting, Since: ago(3), Late: true, Agent: view.Agent{Known: true, Alive: true, Renewed: ago(0)},
			Gates: []view.Gate{
				{Name: gate, Rules: []string{"network", "policy"}, Since: ago(3), Late: true, For: "policy (the pod has no condition a.b/c)"},
				{Name: "a.b/other", Rules: []string{"other"}, For: "path (no answer)"},
				{Name: "a.b/open", Rules: []string{"third"}, Open: true},
			},
		},
		{Namespace: "shop", Name: "old", Node: "w-2", State: view.PodUngated, Agent: view.Agent{Known: true, Renewed: ago(9)}, Ungated: []view.Ungated{{Rule: "network", Gate: gate, Why: "it is older than the rule"}}},
		{Namespace: "shop", Name: "web-2", Node: "w-3", State: view.PodOpen, Agent: view.Agent{Known: true}, Gates: []view.Gate{{Name: gate, Rules: []string{"network"}, Open: true}}},
	},
	Count: view.PodCount{Waiting: 1, Late: 1, Open: 1, Ungated: 1},
}

func TestPods(t *testing.T) {
	compare(t, print.Pods(pods, false, noon), `
NAMESPACE   NAME    NODE   STATE           GATE                                         WAITS   FOR
shop        web-1   w-1    Waiting, late   networking.kubernetes.io/pod-network-ready   3m      policy (the pod has no condition a.b/c)
shop        web-1   w-1    Waiting         a.b/other                                    -       path (no answer)
shop        old     w-2    Ungated         -                                            -       not gated: it is older than the rule
shop        web-2   w-3    Open            networking.kubernetes.io/pod-network-ready   -       -

3 pods that rules select: 1 waiting, 1 open, 1 ungated; 1 late
`)
	wide := print.Pods(pods, true, noon)
	for i, words := range []string{"FOR                                       RULES            AGENT", "network,policy   alive", "other            alive", "network          gone", "network          none"} {
		if !strings.Contains(wide[i], words) {
			t.Errorf("%q is missing in %q", words, wide[i])
		}
	}
	compare(t, print.Pods(view.Pods{Unseen: []string{"agents: permission denied"}}, false, noon), `
0 pods that rules select: 0 waiting, 0 open, 0 ungated
Could not be read: agents: permission denied
`)
}

func TestRulesOfPods(t *testing.T) {
	rules := []view.PodRule{
		{Name: "network", Gate: gate, Components: []string{"flannel", "policy"}, Standing: "Enforced", Created: ago(9), Count: podv1alpha1.PodSummary{Gated: 5, Open: 2, Waiting: 3, Late: 1, Ungated: 4}},
		{Name: "path", Gate: "a.b/path", StartHold: true, Components: []string{"path"}, Standing: "NoAgent", Message: "no agent opens gates", Created: ago(5)},
	}
	compare(t, print.PodRules(rules, false, noon), `
NAME      GATE                                         GATED   OPEN   WAITING      UNGATED   STANDING   AGE
network   networking.kubernetes.io/pod-network-ready   5       2      3 (1 late)   4         Enforced   9m
path      a.b/path                                     0       0      0            0         NoAgent    5m

path is NoAgent: no agent opens gates
`)
	if wide := print.PodRules(rules, true, noon); !strings.HasSuffix(wide[1], "false       flannel,policy") || !strings.HasSuffix(wide[2], "true        path") {
		t.Errorf("got %q", wide)
	}
}

// With PodReadinessRules only, the output does not claim that there are no rules. Errors are untrusted text.
func TestStatus(t *testing.T) {
	pods := []view.PodRule{{Name: "path", Gate: "a.b/path", Standing: "Enforced", Created: ago(5)}}
	compare(t, print.Status(nil, pods, []string{"rules: \x1b[2J"}, false, noon), `
NAME   GATE       GATED   OPEN   WAITING   UNGATED   STANDING   AGE
path   a.b/path   0       0      0         0         Enforced   5m
Could not be read: rules: [2J
`)
	if lines := print.Status(nil, nil, nil, false, noon); len(lines) != 1 || !strings.HasPrefix(lines[0], "No rules.") {
		t.Errorf("got %q", lines)
	}
}

func TestPodExplanation(t *testing.T) {
	explanation := view.PodExplanation{
		Pod: view.Pod{
			Namespace: "shop", Name: "web", Node: "w-1", Created: ago(5), State: view.PodWaiting, Agent: view.Agent{Known: true, Alive: true, Renewed: noon.Add(-7 * time.Second), Version: "v1.2.3"},
			Ungated: []view.Ungated{{Rule: "late-comer", Gate: "a.b/late", Why: "it is older than the rule"}},
		},
		Headline: "shop/web has waited 3m for policy (x)", Ready: corev1.ConditionFalse,
		Chapters: []view.GateChapter{
			{
				Gate: view.Gate{Name: gate, Rules: []string{"network", "second"}, Late: true}, Text: "is closed for 3m: ComponentsNotReady, waiting for policy (x)",
				Components: []view.Component{
					{Rule: "network", Name: "flannel", Kind: podrule.NodeCondition, How: "node condition a.b/Flannel", Result: view.ResultReady, Since: ago(20), Writer: "readygate-reporter"},
					{Rule: "network", Name: "policy", Kind: podrule.PodCondition, How: "pod condition a.b/c", Result: view.ResultNotReady, Why: "x"},
					{Rule: "second", Name: "path", Kind: podrule.Reach, How: "TCP port 9, from the node", Result: view.ResultUnknown, Why: "only the agent on the pod's node can check it"},
				},
			},
			{Gate: view.Gate{Name: "a.b/other", Due: noon.Add(time.Minute)}, Text: "is closed"},
		},
		Latch:      view.Latch{State: view.LatchWaiting, Text: "waits: its key is closed", Key: "closed 10.0.0.7 b1 -", Problem: "ImagePullBackOff"},
		OtherGates: []string{"a.b/lb"},
		Events:     []view.Event{{At: ago(1), Type: corev1.EventTypeWarning, Reason: "NetworkNotReady", Note: "waiting for policy"}},
		Next:       []string{"Check it."},
		Unseen:     []string{"events of the pod: permission denied"},
	}
	compare(t, print.PodExplanation(explanation, noon), `
shop/web has waited 3m for policy (x).

Gate networking.kubernetes.io/pod-network-ready (rule network, second)
  It is closed for 3m: ComponentsNotReady, waiting for policy (x).
  The pod waits for longer than deadlineSeconds: it is late.
  ready    network/flannel, node condition a.b/Flannel
           unchanged for 20m; written by readygate-reporter
  missing  network/policy, pod condition a.b/c: x
  unknown  second/path, TCP port 9, from the node: only the agent on the pod's node can check it

Gate a.b/other (belongs to no rule)
  It is closed.
  The pod is late at 12:01:00 (deadlineSeconds).

Rule late-comer (gate a.b/late)
  It selects this pod, but the pod does not carry its gate: it is older than the rule.

Pod
  Ready is False, 5m old
  Closed gates that belong to no rule: a.b/lb
  Latch: it waits: its key is closed
         its key is: closed 10.0.0.7 b1 -
         its container does not run: ImagePullBackOff
  Agent: the agent of node w-1 is alive: it renewed its Lease 7s ago (version v1.2.3)

Events
  60s ago  NetworkNotReady: waiting for policy (Warning)

What to do
  - Check it.

Could not be read
  - events of the pod: permission denied
`)
}

func TestExplanationOfAPodThatNoRuleSelects(t *testing.T) {
	compare(t, print.PodExplanation(view.PodExplanation{
		Pod: view.Pod{Created: ago(3)}, Headline: "no rule selects shop/web", Ready: corev1.ConditionTrue, Latch: view.Latch{State: view.LatchNone},
		Passed: []view.Passed{{Rule: "a", Why: "it is being deleted"}, {Rule: "b", Why: "its podSelector requires app=db, but the pod has app=web"}},
	}, noon), `
no rule selects shop/web.

Rules that do not select this pod
  a: it is being deleted
  b: its podSelector requires app=db, but the pod has app=web

Pod
  Ready is True, 3m old
`)
}

func TestExplanationShowsTheStateOfTheAgent(t *testing.T) {
	for want, agent := range map[string]view.Agent{
		"the state of the agent of node w-1 is unknown":                                     {},
		"node w-1 has no agent, or the agent has never renewed its Lease":                   {Known: true},
		"the agent of node w-1 is gone: it last renewed its Lease 20m ago":                  {Known: true, Renewed: ago(20)},
		"the agent of node w-1 is alive: it renewed its Lease 0s ago":                       {Known: true, Alive: true, Renewed: noon},
		"the agent of node w-1 is alive: it renewed its Lease 0s ago (version v1.2.3-test)": {Known: true, Alive: true, Renewed: noon, Version: "v1.2.3-test"},
	} {
		lines := print.PodExplanation(view.PodExplanation{Pod: view.Pod{Node: "w-1", Agent: agent}}, noon)
		if got := lines[len(lines)-1]; got != "  Agent: "+want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
