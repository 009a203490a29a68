package plugin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestThePictureFitsTheScreenAndHeldNodesAreFirst(t *testing.T) {
	var nodes []view.Node
	for _, name := range strings.Fields("a b c d e f") {
		nodes = append(nodes, view.Node{Name: name, Created: noon, State: noderule.Released, Settled: true})
	}
	nodes[5].State = noderule.Held
	lines := plugin.Picture(live.Snapshot{Nodes: nodes}, false, 8, noon)
	if len(lines) > 7 || !strings.HasPrefix(lines[0], "6 nodes: 1 held, 5 released") || !strings.HasPrefix(lines[3], "f ") || lines[len(lines)-1] != "… and 3 more" {
		t.Errorf("got %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if held := plugin.Picture(live.Snapshot{Nodes: nodes}, true, 8, noon); len(held) != 4 || !strings.HasPrefix(held[3], "f ") {
		t.Errorf("held only:\n%s", strings.Join(held, "\n"))
	}
	if none := plugin.Picture(live.Snapshot{}, false, 8, noon); none[len(none)-1] != "No nodes to show." {
		t.Errorf("none: %q", none)
	}
}

func TestPictureOfALostClusterShowsItsAge(t *testing.T) {
	fleet := live.Snapshot{Connection: live.Connection{Lost: noon, Problem: "refused\x1b[2J"}}
	for i := range 20 {
		fleet.Nodes = append(fleet.Nodes, view.Node{Name: string(rune('a' + i)), Created: noon, State: noderule.Held})
	}
	lines := plugin.Picture(fleet, false, 10, noon.Add(12*time.Second))
	if lines[0] != "Not connected for 12s: the table shows the state from before." || !strings.HasPrefix(lines[1], "refused") || strings.Contains(lines[1], "\x1b") || len(lines) > 9 {
		t.Errorf("got %d lines:\n%q", len(lines), lines)
	}
}
