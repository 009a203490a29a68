package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

// frame is everything that is on the screen at one moment.
type frame struct {
	title, step, url string
	elapsed          time.Duration
	now              time.Time

	nodes            []view.Node
	pods             map[string]int // by node
	running, waiting int
	ready, gated     int        // pods
	closed           []view.Pod // those that wait for their network

	columns, rows int
	style         terminal.Style
}

// fewNodes is how many nodes are shown one by one in the order of their names. Of more, those
// that are held come first.
const fewNodes = 20

// fewRows is a terminal too low for empty lines.
const fewRows = 12

// lines is the drawing.
func (f *frame) lines() []string {
	lines := f.head()
	if len(f.nodes) == 0 {
		return append(lines, f.style.Dim("no node has joined yet"))
	}
	shown := f.shown(f.rows - len(lines) - 3)
	lines = append(lines, f.table(shown)...)
	if more := len(f.nodes) - len(shown); more > 0 {
		lines = append(lines, f.style.Dim(fmt.Sprintf("… and %d more", more)))
	}
	return lines
}

// head is what stands above the nodes.
func (f *frame) head() []string {
	clock := fmt.Sprintf("%d:%02d", int(f.elapsed.Minutes()), int(f.elapsed.Seconds())%60)
	lines := []string{
		f.style.Bold(terminal.Clean(f.title)) + "  " + f.style.Dim(clock) + "  " + f.url,
		"▸ " + terminal.Clean(f.step),
		f.counts(),
	}
	if f.rows < fewRows {
		return lines
	}
	return slices.Concat([]string{""}, lines, []string{""})
}

func (f *frame) counts() string {
	held, released := f.held()
	text := fmt.Sprintf("nodes %d   %s   %s   pods waiting %d   running %d", len(f.nodes),
		f.style.Yellow(fmt.Sprintf("held %d", held)), f.style.Green(fmt.Sprintf("released %d", released)), f.waiting, f.running)
	if f.gated > 0 {
		text += fmt.Sprintf("   %s   %s", f.style.Yellow(fmt.Sprintf("gate closed %d", len(f.closed))), f.style.Green(fmt.Sprintf("ready %d", f.ready)))
	}
	return text
}

func (f *frame) held() (held, released int) {
	for _, node := range f.nodes {
		switch node.State {
		case noderule.Held:
			held++
		case noderule.Released:
			released++
		}
	}
	return held, released
}

// shown are the nodes that there is room for.
func (f *frame) shown(room int) []view.Node {
	nodes := slices.Clone(f.nodes)
	byName := func(a, b view.Node) int { return compareNatural(a.Name, b.Name) }
	slices.SortFunc(nodes, byName)
	if len(nodes) > min(fewNodes, room) {
		slices.SortStableFunc(nodes, heldFirst)
	}
	return nodes[:min(len(nodes), fewNodes, max(1, room))]
}

// heldFirst is the order of the view without that of names.
func heldFirst(a, b view.Node) int {
	a.Name, b.Name = "", ""
	return view.CompareNodes(a, b)
}

// compareNatural orders worker-2 before worker-10.
func compareNatural(a, b string) int {
	const digits = "0123456789"
	return cmp.Or(
		strings.Compare(strings.TrimRight(a, digits), strings.TrimRight(b, digits)),
		cmp.Compare(len(a), len(b)),
		strings.Compare(a, b),
	)
}

// missing is what rules that are enforced miss on the node. One that waits for another rule has
// not looked yet.
func missing(node view.Node) []view.Missing {
	var all []view.Missing
	for _, s := range node.Rules {
		if !s.Preview && s.Cause != noderule.CauseDependency {
			all = append(all, s.Missing...)
		}
	}
	return all
}

// otherCauses is what a held node waits for that is no condition.
func otherCauses(node view.Node) []string {
	var all []string
	for _, s := range node.Rules {
		if word := otherCauseTexts[s.Cause]; word != "" && s.Held && !s.Preview && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

var otherCauseTexts = map[noderule.Cause]string{
	noderule.CauseMinReady: "its conditions to last",
	noderule.CauseNotReady: "the node to be Ready",
}
