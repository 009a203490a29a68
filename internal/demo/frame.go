package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/terminal"
	"github.com/readygate/readygate/internal/view"
)

// frame is everything that is on the screen at one moment.
type frame struct {
	title, step, url string
	elapsed          time.Duration
	now              time.Time

	nodes            []view.Node
	pods             map[string]int // by node
	running, waiting int

	columns, rows int
	style         terminal.Style
}

// fewNodes is how many nodes are shown one by one in the order of their names. Of more, those
// that are held come first.
const fewNodes = 20

// lines is the drawing.
func (f *frame) lines() []string {
	clock := fmt.Sprintf("%d:%02d", int(f.elapsed.Minutes()), int(f.elapsed.Seconds())%60)
	lines := []string{
		"",
		f.style.Bold(terminal.Clean(f.title)) + "  " + f.style.Dim(clock) + "  " + f.url,
		"▸ " + terminal.Clean(f.step),
		f.counts(),
		"",
	}
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

func (f *frame) counts() string {
	held, released := f.held()
	return fmt.Sprintf("nodes %d   %s   %s   pods waiting %d   running %d", len(f.nodes),
		f.style.Yellow(fmt.Sprintf("held %d", held)), f.style.Green(fmt.Sprintf("released %d", released)), f.waiting, f.running)
}

func (f *frame) held() (held, released int) {
	for _, node := range f.nodes {
		switch node.State {
		case readiness.Held:
			held++
		case readiness.Released:
			released++
		}
	}
	return held, released
}

// shown are the nodes that there is room for.
func (f *frame) shown(room int) []view.Node {
	nodes := slices.Clone(f.nodes)
	compare := func(a, b view.Node) int { return naturally(a.Name, b.Name) }
	if len(nodes) > min(fewNodes, room) {
		compare = view.CompareNodes
	}
	slices.SortFunc(nodes, compare)
	return nodes[:min(len(nodes), fewNodes, max(1, room))]
}

// naturally orders worker-2 before worker-10.
func naturally(a, b string) int {
	if len(a) != len(b) && strings.TrimRight(a, "0123456789") == strings.TrimRight(b, "0123456789") {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// table has a line for each node, in columns as wide as they must be.
func (f *frame) table(nodes []view.Node) []string {
	rows := [][]string{{"NODE", "STATE", "PODS", "FOR", "TAINTS OF RULES", "MISSING"}}
	for _, node := range nodes {
		rows = append(rows, f.row(node))
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		for i := range row {
			row[i] = terminal.Pad(row[i], widths[i])
			if n > 0 && i == 1 {
				row[i] = f.paint(nodes[n-1], row[i])
			}
		}
		lines[n] = strings.TrimRight(strings.Join(row, "  "), " ")
	}
	lines[0] = f.style.Dim(lines[0])
	return lines
}

// row is the line of a node: plain text, so that it can be measured.
func (f *frame) row(node view.Node) []string {
	var taints []string
	for _, s := range node.Rules {
		if s.Held {
			taints = append(taints, s.Taint)
		}
	}
	since := node.Created
	if node.State == readiness.Held && !node.Since.IsZero() {
		since = node.Since
	} else if met := lastMet(node); node.State == readiness.Released && !met.IsZero() {
		since = met
	}
	return []string{
		terminal.Clean(node.Name), stateText(node.State), strconv.Itoa(f.pods[node.Name]), view.Age(since, f.now),
		terminal.Clean(strings.Join(taints, ", ")), terminal.Clean(strings.Join(missing(node), "; ")),
	}
}

// missing is what rules that are enforced miss on the node.
func missing(node view.Node) []string {
	var texts []string
	for _, s := range node.Rules {
		if s.Preview {
			continue
		}
		for _, m := range s.Missing {
			texts = append(texts, m.String())
		}
	}
	return texts
}

// stateText tells states apart by shape too, not by colour alone.
func stateText(state readiness.State) string {
	switch state {
	case readiness.Held:
		return "○ held"
	case readiness.Released:
		return "● released"
	}
	return "· free"
}

func (f *frame) paint(node view.Node, text string) string {
	switch node.State {
	case readiness.Held:
		return f.style.Yellow(text)
	case readiness.Released:
		return f.style.Green(text)
	}
	return f.style.Dim(text)
}

// lastMet is when the last requirement of a rule became met.
func lastMet(node view.Node) time.Time {
	var last time.Time
	for _, s := range node.Rules {
		if s.Met.After(last) {
			last = s.Met
		}
	}
	return last
}
