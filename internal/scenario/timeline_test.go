package scenario_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/scenario"
)

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// timeline returns a timeline in short form: step, time and node.
func timeline(s *scenario.Scenario) []string {
	var lines []string
	for _, m := range s.Timeline() {
		what := "nothing"
		switch step := s.Steps[m.Step]; {
		case step.Join != nil:
			what = fmt.Sprintf("join %s %v %v", m.Node, s.Reported(step.Join), step.Join.HasReporter())
		case step.Component != nil:
			what = fmt.Sprintf("%s on %s %s", step.Component.Name, m.Node, step.Component.Is)
		case step.Reporters != nil:
			what = fmt.Sprintf("reporter on %s %v", m.Node, step.Reporters.Run)
		case step.Reboot != nil:
			what = fmt.Sprintf("boot of %s away %v", m.Node, m.Away)
		case step.DaemonSet != nil:
			what = "DaemonSet " + step.DaemonSet.Name
		case step.NewSandbox != nil:
			what = fmt.Sprintf("sandboxes of %s on %s gone %v", step.NewSandbox.Deploy, m.Node, m.Away)
		case step.Expect != nil:
			what = step.Expect.Text()
		}
		lines = append(lines, fmt.Sprintf("%d %v %s", m.Step, m.After, what))
	}
	return lines
}

func TestTimelineOfEveryKindOfStep(t *testing.T) {
	s := parse(t, `
title: t
about: a
components: {net: {condition: example.com/N}, gpu: {condition: example.com/G}}
steps:
- say: Hello.
- join: {name: w, count: 3, every: 500ms, runs: [net]}
- join: {name: big, reporter: false}
- component: {name: net, nodes: ["w-*"], is: up, every: 2s}
- component: {name: gpu, nodes: [big, w-1], is: hangs}
- reporters: {nodes: [big], run: true}
- pause: 3s
- expect: {nodes: [big], released: all, for: 5s}
`)
	want := []string{
		"0 0s nothing",
		"1 0s join w-1 [net] true", "1 500ms join w-2 [net] true", "1 1s join w-3 [net] true",
		"2 0s join big [gpu net] false",
		"3 0s net on w-1 up", "3 2s net on w-2 up", "3 4s net on w-3 up",
		"4 0s gpu on w-1 hangs", "4 0s gpu on big hangs",
		"5 0s reporter on big true",
		"6 3s nothing",
		"7 0s all of big released, stable for 5s",
	}
	if got := timeline(s); !slices.Equal(got, want) {
		t.Errorf("the timeline is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := s.Length(); got != 13*time.Second {
		t.Errorf("the scenario takes at least %v, want 13s", got)
	}
}

func TestPatternsMatchNodesThatHaveJoinedBefore(t *testing.T) {
	s := parse(t, `
title: t
about: a
components: {net: {condition: example.com/N}}
steps:
- join: {name: w-1}
- component: {name: net, nodes: ["w-*"], is: up}
- join: {name: w-2}
`)
	for _, m := range s.Timeline() {
		if s.Steps[m.Step].Component != nil && m.Node != "w-1" {
			t.Errorf("%s has not joined yet", m.Node)
		}
	}
}

func TestNodesOfARebootStopAndStartTogether(t *testing.T) {
	s := parse(t, `
title: t
about: a
steps:
- join: {name: w, count: 2}
- reboot: {nodes: ["w-*"], takes: 5s}
- reboot: {nodes: [w-2]}
- daemonSet: {name: agent, reports: example.com/N}
`)
	want := []string{
		"0 0s join w-1 [] true", "0 0s join w-2 [] true",
		"1 0s boot of w-1 away true", "1 0s boot of w-2 away true",
		"1 5s boot of w-1 away false", "1 5s boot of w-2 away false",
		"2 0s boot of w-2 away false",
		"3 0s DaemonSet agent",
	}
	if got := timeline(s); !slices.Equal(got, want) {
		t.Errorf("the timeline is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := s.Length(); got != 5*time.Second {
		t.Errorf("the scenario takes at least %v, want 5s", got)
	}
}

func TestPodsLoseTheirSandboxesTogetherAndGetNewOnesTogether(t *testing.T) {
	s := parse(t, `
title: t
about: a
steps:
- join: {name: w, count: 2}
- deploy: {name: shop, pods: 2}
- newSandbox: {deploy: shop, nodes: ["w-*"]}
- newSandbox: {deploy: shop, nodes: [w-2], takes: 5s}
`)
	want := []string{
		"0 0s join w-1 [] true", "0 0s join w-2 [] true",
		"1 0s nothing",
		"2 0s sandboxes of shop on w-1 gone true", "2 0s sandboxes of shop on w-2 gone true",
		"2 3s sandboxes of shop on w-1 gone false", "2 3s sandboxes of shop on w-2 gone false",
		"3 0s sandboxes of shop on w-2 gone true", "3 5s sandboxes of shop on w-2 gone false",
	}
	if got := timeline(s); !slices.Equal(got, want) {
		t.Errorf("the timeline is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := s.Length(); got != 8*time.Second {
		t.Errorf("the scenario takes at least %v, want 8s", got)
	}
}

func TestReportersCheckNoComponentThatSetsConditionsOfPods(t *testing.T) {
	s := parse(t, `
title: t
about: a
components: {net: {condition: example.com/N}, policy: {podCondition: policy.example.com/programmed}}
steps:
- join: {name: w}
- join: {name: x, runs: [policy]}
- component: {name: policy, nodes: [w], is: up}
`)
	want := []string{"0 0s join w [net] true", "1 0s join x [] true", "2 0s policy on w up"}
	if got := timeline(s); !slices.Equal(got, want) {
		t.Errorf("the timeline is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTextOfEveryStep(t *testing.T) {
	s := parse(t, `
title: t
about: a
components: {net: {condition: example.com/N}}
steps:
- say: Hello.
- apply: {file: examples/x.yaml}
- apply: {manifest: "metadata:\n  name: a-rule\n", refused: other}
- delete: {rule: a-rule}
- join: {name: w, count: 2}
- join: {name: x}
- deploy: {name: shop, pods: 3}
- component: {name: net, nodes: ["w-*"], is: hangs}
- daemonSet: {name: agent, reports: example.com/N, labels: {a: b}}
- daemonSet: {name: agent}
- reporters: {nodes: [x], run: false}
- reporters: {nodes: [x], run: true}
- reboot: {nodes: [x, "w-*"], takes: 5s}
- reboot: {nodes: [x]}
- pause: 2s
- expect: {held: 2, running: 1, waiting: 0, rule: a-rule, standing: Conflict, says: other}
- expect: {taintedAtCreation: {a: b}, why: {node: x, contains: waiting}}
- expect: {tolerated: {a: b}, for: 2s}
- newSandbox: {deploy: shop, nodes: [x, "w-*"]}
- expect: {nodes: [x], pods: {gated: 3, waiting: 1, ready: 2, reasons: {B: 1, A: 2}}, gatedAtCreation: {}}
- expect: {last: {node: x, component: net}, why: {pod: shop, node: x, contains: waiting}}
`)
	want := []string{
		"Hello.", "apply examples/x.yaml", "apply rule a-rule, which the API server must reject", "delete rule a-rule", "2 nodes join: w-1 to w-2", "node x joins",
		"deploy shop: 3 pods", "net on w-* is hanging",
		"apply DaemonSet agent, which reports example.com/N", "restart DaemonSet agent", "stop reporters on x", "start reporters on x",
		"reboot x, w-*; Ready is Unknown for 5s", "reboot x; Ready does not change", "wait 2s",
		`2 nodes held, 0 pods waiting, 1 pod running, rule a-rule is Conflict, its message contains "other"`,
		`a new node is tainted at creation, the explanation of x contains "waiting"`,
		"a DaemonSet gets a toleration, stable for 2s",
		"the pods of shop on x, w-* get a new sandbox",
		"3 pods with a gate, 1 pod with a closed gate, 2 pods ready, 2 gates with reason A, 1 gate with reason B on x, a new pod gets a gate at creation",
		`on x, net was the last component to become ready, the explanation of a pod of shop on x contains "waiting"`,
	}
	for i := range s.Steps {
		if got := s.Steps[i].Text(); got != want[i] {
			t.Errorf("step %d says %q, want %q", i, got, want[i])
		}
	}
}
