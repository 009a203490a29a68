package demo_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/plugin/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func heldNode(name string) view.Node {
	return view.Node{Name: name, State: noderule.Held, Since: noon.Add(-20 * time.Second), Rules: []view.Standing{{
		Rule: "net", Taint: "readiness.k8s.io/Net:NoSchedule", Held: true, State: noderule.Held,
		Missing: []view.Missing{{Type: "example.com/Net", Absent: true, Required: "True"}},
	}}}
}

func freeNode(name string) view.Node {
	return view.Node{Name: name, State: noderule.Released, Created: noon.Add(-time.Minute), Rules: []view.Standing{{Rule: "net", Met: noon.Add(-5 * time.Second)}}}
}

func TestOneLinePerNode(t *testing.T) {
	got := strings.Join(demo.Lines([]view.Node{freeNode("worker-10"), heldNode("worker-2")}, map[string]int{"worker-10": 4}, noon, 120, 30), "\n")
	want := `
A title  0:00  http://127.0.0.1:1
▸ a step
nodes 2   held 1   released 1   pods waiting 1   running 3

NODE       STATE       FOR  PODS  WAITS FOR            TAINTS
worker-2   ○ held      20s  0     Net is not reported  Net:NoSchedule
worker-10  ● released  5s   4`
	if got != want {
		t.Errorf("drawn:\n%s\nwant:\n%s", got, want)
	}
}

func TestANarrowTerminalStillShowsWhatANodeWaitsFor(t *testing.T) {
	node := heldNode("worker-1")
	node.Rules[0].Taint = "readiness.k8s.io/projectcalico.org/CalicoReady:NoSchedule"
	node.Rules[0].Missing = []view.Missing{{Type: "projectcalico.org/CalicoReady", Current: "False", Required: "True"}}
	two := heldNode("worker-1")
	two.Rules = append(two.Rules, two.Rules[0], node.Rules[0])
	for _, c := range []struct {
		node    view.Node
		columns int
		want    string
	}{
		{node, 80, "worker-1  ○ held  20s  0     CalicoReady is False  CalicoReady:NoSchedule"},
		{node, 60, "worker-1  ○ held  20s  0     CalicoReady is False"},
		{two, 80, "worker-1  ○ held  20s  0     Net is not reported, CalicoReady is False"},
		{two, 66, "worker-1  ○ held  20s  Net is not reported, CalicoReady is False"},
	} {
		lines := demo.Lines([]view.Node{c.node}, nil, noon, c.columns, 30)
		if got := lines[len(lines)-1]; got != c.want {
			t.Errorf("%d columns: %q, want %q", c.columns, got, c.want)
		}
	}
}

func TestNodesOfOneStateAreInNaturalOrder(t *testing.T) {
	var nodes []view.Node
	for _, i := range rand.Perm(40) {
		nodes = append(nodes, heldNode(fmt.Sprintf("node-%d", i)))
	}
	old := heldNode("node-99")
	old.Since = noon.Add(-time.Hour)
	nodes = append(nodes, freeNode("a"), old)
	want := "node-99"
	for n, line := range demo.Lines(nodes, nil, noon, 120, 30)[6:26] {
		if !strings.HasPrefix(line, want+" ") {
			t.Errorf("line %d: %q, want %s", n, line, want)
		}
		want = fmt.Sprintf("node-%d", n)
	}
}

func TestALowTerminalShowsThatThereAreMoreNodes(t *testing.T) {
	var nodes []view.Node
	for i := range 7 {
		nodes = append(nodes, heldNode(fmt.Sprintf("w-%d", i)))
	}
	for rows := 7; rows < 14; rows++ {
		lines := demo.Lines(nodes, nil, noon, 120, rows)
		if len(lines) > rows-1 {
			t.Errorf("%d lines do not fit into %d rows", len(lines), rows)
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "… and ") && !strings.HasPrefix(last, "w-6 ") {
			t.Errorf("%d rows: the last line is %q", rows, last)
		}
	}
}

func TestHeldNodesAreShownFirst(t *testing.T) {
	var nodes []view.Node
	for i := range 40 {
		nodes = append(nodes, freeNode(fmt.Sprintf("a-%d", i)))
	}
	nodes = append(nodes, heldNode("z-1"))
	for rows, shown := range map[int]int{100: 20, 16: 8} {
		lines := demo.Lines(nodes, nil, noon, 120, rows)
		if !strings.HasPrefix(lines[6], "z-1 ") {
			t.Errorf("%d rows: the first node is %q", rows, lines[6])
		}
		if got, want := lines[len(lines)-1], fmt.Sprintf("… and %d more", 41-shown); got != want {
			t.Errorf("%d rows: the last line is %q, want %q", rows, got, want)
		}
		if len(lines) > rows-1 {
			t.Errorf("%d lines do not fit into %d rows", len(lines), rows)
		}
	}
}

func TestDryRunRuleShowsNoMissingCondition(t *testing.T) {
	preview := freeNode("w")
	preview.Rules = append(preview.Rules, view.Standing{Rule: "dry", Preview: true, Missing: []view.Missing{{Type: "example.com/Dry"}}})
	if got := strings.Join(demo.Lines([]view.Node{preview}, nil, noon, 120, 30), "\n"); strings.Contains(got, "Dry") {
		t.Error(got)
	}
}

func TestAHoldWithoutAMissingConditionShowsWhatTheNodeWaitsFor(t *testing.T) {
	for cause, want := range map[noderule.Cause]string{
		noderule.CauseMinReady:   "minReadySeconds",
		noderule.CauseNotReady:   "the node to be Ready",
		noderule.CauseDependency: "Net is not reported",
	} {
		waiting := heldNode("w")
		waiting.Rules = append(waiting.Rules, view.Standing{Rule: "other", Held: true, Taint: "readiness.k8s.io/Other:NoSchedule", Cause: cause})
		if cause == noderule.CauseDependency {
			waiting.Rules[1].Missing = []view.Missing{{Type: "example.com/Storage", Absent: true}}
		}
		got := strings.Join(demo.Lines([]view.Node{waiting}, nil, noon, 120, 30), "\n")
		if !strings.Contains(got, want) || strings.Contains(got, "Storage") {
			t.Errorf("%s: drawn:\n%s\nwant %q", cause, got, want)
		}
	}
}

// waitingPod returns a pod whose gate has this text.
func waitingPod(name, node, says string) view.Pod {
	return view.Pod{Namespace: demo.Namespace, Name: name, Node: node, State: view.PodWaiting, Gates: []view.Gate{{Name: "g", For: says}}}
}

func TestTheLineOfANodeShowsWhatItsPodsWaitFor(t *testing.T) {
	nodes := []view.Node{{Name: "worker-1", Created: noon.Add(-time.Minute)}, {Name: "worker-2", Created: noon.Add(-time.Minute)}}
	closed := []view.Pod{
		waitingPod("a", "worker-1", "flannel (node condition network.example.com/FlannelReady is False), policy (the pod has no condition x)"),
		waitingPod("b", "worker-1", "flannel (node condition network.example.com/FlannelReady is False), policy (condition x is False)"),
		waitingPod("c", "worker-1", "policy (the pod has no condition x)"),
	}
	got := strings.Join(demo.LinesOfPods(nodes, closed, 4, noon), "\n")
	for _, want := range []string{"gate closed 3   ready 4", "2 pods wait for flannel, policy, 1 pod waits for policy"} {
		if !strings.Contains(got, want) {
			t.Errorf("drawn:\n%s\nwant %q", got, want)
		}
	}
	if strings.Count(got, "wait for") != 1 {
		t.Errorf("a node without such pods shows some:\n%s", got)
	}
	if got := strings.Join(demo.Lines(nodes, nil, noon, 120, 30), "\n"); strings.Contains(got, "gate closed") {
		t.Errorf("there are no gates, but a count of them:\n%s", got)
	}
}

func TestWithoutATerminalWhatPodsWaitForIsPrintedOnce(t *testing.T) {
	var out bytes.Buffer
	policy := []view.Pod{waitingPod("a", "w", "policy (x)")}
	demo.PrintPods(&out, []view.Node{{Name: "w"}, {Name: "x"}}, nil, policy, policy, nil, nil)
	if got, want := out.String(), "    w: 1 pod waits for policy\n    w: no pod waits for its network\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestUntrustedNamesHaveNoControlCharacters(t *testing.T) {
	hostile := heldNode("w\x1b[2J")
	hostile.Rules[0].Missing[0].Type = "a\nb\x1b]0;x\x07"
	for _, line := range demo.Lines([]view.Node{hostile}, nil, noon, 120, 30) {
		if strings.ContainsAny(line, "\x1b\x07\n") {
			t.Errorf("%q", line)
		}
	}
}
