package demo_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func heldNode(name string) view.Node {
	return view.Node{Name: name, State: readiness.Held, Since: noon.Add(-20 * time.Second), Rules: []view.Standing{{
		Rule: "net", Taint: "readiness.k8s.io/Net:NoSchedule", Held: true, State: readiness.Held,
		Missing: []view.Missing{{Type: "example.com/Net", Absent: true, Required: "True"}},
	}}}
}

func freeNode(name string) view.Node {
	return view.Node{Name: name, State: readiness.Released, Created: noon.Add(-time.Minute), Rules: []view.Standing{{Rule: "net", Met: noon.Add(-5 * time.Second)}}}
}

func TestALineANode(t *testing.T) {
	got := strings.Join(demo.Lines([]view.Node{freeNode("worker-10"), heldNode("worker-2")}, map[string]int{"worker-10": 4}, noon, 30), "\n")
	want := `
A story  0:00  http://127.0.0.1:1
▸ a step
nodes 2   held 1   released 1   pods waiting 1   running 3

NODE       STATE       PODS  FOR  TAINTS OF RULES                  MISSING
worker-2   ○ held      0     20s  readiness.k8s.io/Net:NoSchedule  example.com/Net is not reported, must be True
worker-10  ● released  4     5s`
	if got != want {
		t.Errorf("drawn:\n%s\nwant:\n%s", got, want)
	}
}

func TestOfManyNodesTheHeldOnesAreShown(t *testing.T) {
	var nodes []view.Node
	for i := range 40 {
		nodes = append(nodes, freeNode(fmt.Sprintf("a-%d", i)))
	}
	nodes = append(nodes, heldNode("z-1"))
	for rows, shown := range map[int]int{100: 20, 16: 8} {
		lines := demo.Lines(nodes, nil, noon, rows)
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

func TestARuleThatOnlyPreviewsMissesNothing(t *testing.T) {
	preview := freeNode("w")
	preview.Rules = append(preview.Rules, view.Standing{Rule: "dry", Preview: true, Missing: []view.Missing{{Type: "example.com/Dry"}}})
	if got := strings.Join(demo.Lines([]view.Node{preview}, nil, noon, 30), "\n"); strings.Contains(got, "example.com/Dry") {
		t.Error(got)
	}
}

func TestNamesOfOthersCannotSteerTheTerminal(t *testing.T) {
	hostile := heldNode("w\x1b[2J")
	hostile.Rules[0].Missing[0].Type = "a\nb\x1b]0;x\x07"
	for _, line := range demo.Lines([]view.Node{hostile}, nil, noon, 30) {
		if strings.ContainsAny(line, "\x1b\x07\n") {
			t.Errorf("%q", line)
		}
	}
}
