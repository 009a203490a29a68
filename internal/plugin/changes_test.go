package plugin_test

import (
	"slices"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

func isHeld(name string) view.Node {
	return view.Node{Name: name, State: noderule.Held, Settled: true, Rules: []view.Standing{{Rule: "network", Held: true}}}
}

func isReleased(name string) view.Node {
	return view.Node{Name: name, State: noderule.Released, Settled: true}
}

func nodesOf(nodes ...view.Node) live.Delta { return live.Delta{Nodes: nodes} }

// step is a delta with its expected lines.
type step struct {
	delta live.Delta
	want  []string
}

func tellAll(t *testing.T, held bool, steps []step) {
	t.Helper()
	told := plugin.NewChanges(held)
	for i, s := range steps {
		if got := told.Lines(s.delta, noon.Add(time.Duration(i)*time.Second)); !slices.Equal(got, s.want) {
			t.Errorf("step %d: got %q, want %q", i, got, s.want)
		}
	}
}

func TestUnchangedLineIsNotRepeated(t *testing.T) {
	cordoned := isHeld("a")
	cordoned.Unschedulable = true
	tellAll(t, false, []step{
		{nodesOf(isHeld("a"), isReleased("b")), []string{"12:00:00 a Held by network", "12:00:00 b Released"}},
		{nodesOf(cordoned), nil},
		{nodesOf(isReleased("a"), isReleased("b")), []string{"12:00:02 a Released"}},
		{live.Delta{Gone: []string{"a", "never shown"}}, []string{"12:00:03 a is gone"}},
		{nodesOf(isReleased("a")), []string{"12:00:04 a Released"}},
	})
}

func TestHeldOnlyOutputIncludesTheReleaseOfHeldNodes(t *testing.T) {
	tellAll(t, true, []step{
		{nodesOf(isHeld("a")), []string{"12:00:00 a Held by network"}},
		{nodesOf(isReleased("b")), nil},
		{nodesOf(isReleased("a")), []string{"12:00:02 a Released"}},
		{nodesOf(isReleased("a")), nil},
		{live.Delta{Gone: []string{"a"}}, nil},
		{nodesOf(isHeld("b")), []string{"12:00:05 b Held by network"}},
		{live.Delta{Gone: []string{"b"}}, []string{"12:00:06 b is gone"}},
	})
}

func TestALostConnectionIsOneLineAndItsReturnAnother(t *testing.T) {
	tellAll(t, false, []step{
		{live.Delta{Connection: &live.Connection{}}, nil},
		{live.Delta{Connection: &live.Connection{Lost: noon, Problem: "refused"}}, []string{"12:00:01 not connected, changes are not shown: refused"}},
		{live.Delta{Connection: &live.Connection{Lost: noon, Problem: "reset"}}, nil},
		{nodesOf(isHeld("a")), []string{"12:00:03 a Held by network"}},
		{live.Delta{Connection: &live.Connection{}}, []string{"12:00:04 connected again after 4s"}},
	})
}
