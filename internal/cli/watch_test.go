package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/cli"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/view"
)

func TestThePictureFitsTheScreenAndHeldNodesAreFirst(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var nodes []view.Node
	for _, name := range strings.Fields("a b c d e f") {
		nodes = append(nodes, view.Node{Name: name, Created: noon, State: readiness.Released, Settled: true})
	}
	nodes[5].State = readiness.Held
	lines := cli.Picture(nodes, false, 8, noon)
	if len(lines) > 7 || !strings.HasPrefix(lines[0], "6 nodes: 1 held, 5 released") || !strings.HasPrefix(lines[3], "f ") || lines[len(lines)-1] != "… and 3 more" {
		t.Errorf("got %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if held := cli.Picture(nodes, true, 8, noon); len(held) != 4 || !strings.HasPrefix(held[3], "f ") {
		t.Errorf("held only:\n%s", strings.Join(held, "\n"))
	}
	if none := cli.Picture(nil, false, 8, noon); none[len(none)-1] != "No node to show." {
		t.Errorf("none: %q", none)
	}
}
