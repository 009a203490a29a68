package demo

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

// The columns of the table, in their order.
const (
	nodeColumn = iota
	stateColumn
	forColumn
	podsColumn
	waitsColumn
	taintsColumn
)

// optionalColumns are the columns that a narrow terminal does without, the first one first.
var optionalColumns = []int{taintsColumn, podsColumn}

// gap is between two columns.
const gap = "  "

// table has a line for each node, in columns as wide as they must be.
func (f *frame) table(nodes []view.Node) []string {
	rows := [][]string{{"NODE", "STATE", "FOR", "PODS", "WAITS FOR", "TAINTS"}}
	for _, node := range nodes {
		rows = append(rows, f.row(node))
	}
	widths := f.widths(rows)
	lines := make([]string, len(rows))
	for n, row := range rows {
		var cells []string
		for i, width := range widths {
			if width == 0 {
				continue
			}
			cell := terminal.Pad(row[i], width)
			if n > 0 && i == stateColumn {
				cell = f.paint(nodes[n-1], cell)
			}
			cells = append(cells, cell)
		}
		lines[n] = strings.TrimRight(strings.Join(cells, gap), " ")
	}
	lines[0] = f.style.Dim(lines[0])
	return lines
}

// widths are those of the columns; of one that there is no room for, 0.
func (f *frame) widths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	total := len(gap) * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for _, column := range optionalColumns {
		if total <= f.columns {
			break
		}
		total -= widths[column] + len(gap)
		widths[column] = 0
	}
	return widths
}

// row is the line of a node: plain text, so that it can be measured.
func (f *frame) row(node view.Node) []string {
	var taints []string
	for _, s := range node.Rules {
		if s.Held {
			taints = append(taints, short(s.Taint))
		}
	}
	since := node.Created
	if node.State == noderule.Held && !node.Since.IsZero() {
		since = node.Since
	} else if met := lastMet(node); node.State == noderule.Released && !met.IsZero() {
		since = met
	}
	return []string{
		terminal.Clean(node.Name), stateText(node.State), view.Age(since, f.now), strconv.Itoa(f.pods[node.Name]),
		terminal.Clean(strings.Join(append(waitsFor(node), f.closedOn(node.Name)...), ", ")), terminal.Clean(strings.Join(taints, ", ")),
	}
}

// closedOn is what pods of a node wait for, one text for all that wait for the same: "2 pods wait for
// policy".
func (f *frame) closedOn(node string) []string {
	count := map[string]int{}
	for _, pod := range f.closed {
		if pod.Node == node {
			count[closedFor(pod)]++
		}
	}
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		if n := count[what]; n > 1 {
			texts = append(texts, fmt.Sprintf("%d pods wait for %s", n, what))
		} else {
			texts = append(texts, "1 pod waits for "+what)
		}
	}
	return texts
}

// details are what a gate says about the components that it names.
var details = regexp.MustCompile(` \([^()]*\)`)

// closedFor is what a pod waits for in as few words as can be: the names of components.
func closedFor(pod view.Pod) string {
	var parts []string
	for _, gate := range pod.Gates {
		if !gate.Open {
			parts = append(parts, details.ReplaceAllString(gate.For, ""))
		}
	}
	return strings.Join(parts, ", ")
}

// waitsFor is what is missing in as few words as can be, each once: "CalicoReady is False".
func waitsFor(node view.Node) []string {
	var texts []string
	for _, m := range missing(node) {
		text := short(m.Type) + " is " + string(m.Current)
		if m.Absent {
			text = short(m.Type) + " is not reported"
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return append(texts, otherCauses(node)...)
}

// short leaves out whose name it is: CalicoReady of projectcalico.org/CalicoReady.
func short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// stateText tells states apart by shape too, not by colour alone.
func stateText(state noderule.State) string {
	switch state {
	case noderule.Held:
		return "○ held"
	case noderule.Released:
		return "● released"
	}
	return "· free"
}

func (f *frame) paint(node view.Node, text string) string {
	switch node.State {
	case noderule.Held:
		return f.style.Yellow(text)
	case noderule.Released:
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
