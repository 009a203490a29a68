package demo

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/scenario"
)

// frame is the content of the screen at one moment.
type frame struct {
	title, step, url string
	elapsed          time.Duration
	now              time.Time

	nodes            []view.Node
	pods             map[string]int // by node
	running, waiting int
	ready, gated     int        // pods
	closed           []view.Pod // pods that wait for their network

	columns, rows int
	style         terminal.Style
}

// fewNodes is the maximum number of nodes in the table. If there are more, held nodes come first.
const fewNodes = 20

// fewRows is the height of a terminal below which the frame has no empty lines.
const fewRows = 12

// count counts the pods of the scenario.
func (f *frame) count(pods []scenario.PodState) {
	f.pods = map[string]int{}
	for _, pod := range pods {
		f.pods[pod.Node]++
		if pod.Running {
			f.running++
		}
		if pod.Ready {
			f.ready++
		}
		if pod.Gated {
			f.gated++
		}
	}
	f.waiting = f.pods[""]
}

// lines returns the lines of the frame.
func (f *frame) lines() []string {
	clock := fmt.Sprintf("%d:%02d", int(f.elapsed.Minutes()), int(f.elapsed.Seconds())%60)
	lines := []string{
		f.style.Bold(terminal.Clean(f.title)) + "  " + f.style.Dim(clock) + "  " + f.url,
		"▸ " + terminal.Clean(f.step),
		f.counts(),
	}
	if f.rows >= fewRows {
		lines = slices.Concat([]string{""}, lines, []string{""})
	}
	if len(f.nodes) == 0 {
		return append(lines, f.style.Dim("no nodes yet"))
	}
	shown := f.shown(f.rows - len(lines) - 3)
	lines = append(lines, f.table(shown)...)
	if more := len(f.nodes) - len(shown); more > 0 {
		lines = append(lines, f.style.Dim(fmt.Sprintf("… and %d more", more)))
	}
	return lines
}

func (f *frame) counts() string {
	states := map[noderule.State]int{}
	for _, node := range f.nodes {
		states[node.State]++
	}
	text := fmt.Sprintf("nodes %d   %s   %s   pods waiting %d   running %d", len(f.nodes),
		f.style.Yellow(fmt.Sprintf("held %d", states[noderule.Held])), f.style.Green(fmt.Sprintf("released %d", states[noderule.Released])), f.waiting, f.running)
	if f.gated > 0 {
		text += fmt.Sprintf("   %s   %s", f.style.Yellow(fmt.Sprintf("gate closed %d", len(f.closed))), f.style.Green(fmt.Sprintf("ready %d", f.ready)))
	}
	return text
}

// shown returns the nodes that fit, worker-2 before worker-10.
func (f *frame) shown(room int) []view.Node {
	const digits = "0123456789"
	nodes := slices.SortedFunc(slices.Values(f.nodes), func(a, b view.Node) int {
		return cmp.Or(
			strings.Compare(strings.TrimRight(a.Name, digits), strings.TrimRight(b.Name, digits)),
			cmp.Compare(len(a.Name), len(b.Name)),
			strings.Compare(a.Name, b.Name),
		)
	})
	if len(nodes) > min(fewNodes, room) {
		slices.SortStableFunc(nodes, func(a, b view.Node) int {
			a.Name, b.Name = "", "" // held nodes first, otherwise in the same order
			return view.CompareNodes(a, b)
		})
	}
	return nodes[:min(len(nodes), fewNodes, max(1, room))]
}

// stateColumn is the column of the table that has a colour.
const stateColumn = 1

// table returns a header and one line per node. If the terminal is too narrow, it omits the taints, then the pods.
func (f *frame) table(nodes []view.Node) []string {
	rows := [][]string{{"NODE", "STATE", "FOR", "PODS", "WAITS FOR", "TAINTS"}}
	for _, node := range nodes {
		rows = append(rows, f.row(node))
	}
	var lines []string
	for _, columns := range [][]int{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4}, {0, 1, 2, 4}} {
		lines = aligned(rows, columns)
		if !slices.ContainsFunc(lines, func(line string) bool { return len([]rune(line)) > f.columns }) {
			break
		}
	}
	lines[0] = f.style.Dim(lines[0])
	for i, node := range nodes {
		paint := f.style.Dim
		switch node.State {
		case noderule.Held:
			paint = f.style.Yellow
		case noderule.Released:
			paint = f.style.Green
		}
		text := rows[i+1][stateColumn]
		lines[i+1] = strings.Replace(lines[i+1], text, paint(text), 1)
	}
	return lines
}

// aligned returns lines with these columns of the rows.
func aligned(rows [][]string, columns []int) []string {
	var text bytes.Buffer
	writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		var cells []string
		for _, column := range columns {
			cells = append(cells, row[column])
		}
		_, _ = writer.Write([]byte(strings.Join(cells, "\t") + "\n")) // a buffer accepts everything
	}
	_ = writer.Flush()
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// stateTexts differ in shape, not only in colour.
var stateTexts = map[noderule.State]string{noderule.Held: "○ held", noderule.Released: "● released"}

// row returns the cells of a node, without colours.
func (f *frame) row(node view.Node) []string {
	var taints []string
	var met time.Time // when the last requirement of a rule became met
	for _, s := range node.Rules {
		if s.Held {
			taints = append(taints, short(s.Taint))
		}
		if s.Met.After(met) {
			met = s.Met
		}
	}
	since := node.Created
	switch {
	case node.State == noderule.Held && !node.Since.IsZero():
		since = node.Since
	case node.State == noderule.Released && !met.IsZero():
		since = met
	}
	return []string{
		terminal.Clean(node.Name), cmp.Or(stateTexts[node.State], "· free"), view.Age(since, f.now), strconv.Itoa(f.pods[node.Name]),
		terminal.Clean(strings.Join(append(waitsFor(node), f.closedOn(node.Name)...), ", ")), terminal.Clean(strings.Join(taints, ", ")),
	}
}

// short returns a name without its prefix: CalicoReady of projectcalico.org/CalicoReady.
func short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// waitsFor returns the unmet requirements as short texts without duplicates: "CalicoReady is False".
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

// missing returns the unmet requirements of enforced rules, without those of rules that wait for another rule.
func missing(node view.Node) []view.Missing {
	var all []view.Missing
	for _, s := range node.Rules {
		if !s.Preview && s.Cause != noderule.CauseDependency {
			all = append(all, s.Missing...)
		}
	}
	return all
}

// otherCauses returns why a node is held, other than by unmet requirements.
func otherCauses(node view.Node) []string {
	var all []string
	for _, s := range node.Rules {
		if text := otherCauseTexts[s.Cause]; text != "" && s.Held && !s.Preview && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

var otherCauseTexts = map[noderule.Cause]string{
	noderule.CauseMinReady: "minReadySeconds",
	noderule.CauseNotReady: "the node to be Ready",
}

// details are the reasons, in parentheses, in the text of a gate.
var details = regexp.MustCompile(` \([^()]*\)`)

// closedOn returns one text per set of components that pods of a node wait for: "2 pods wait for
// policy".
func (f *frame) closedOn(node string) []string {
	count := map[string]int{}
	for _, pod := range f.closed {
		if pod.Node != node {
			continue
		}
		var components []string
		for _, gate := range pod.Gates {
			if !gate.Open {
				components = append(components, details.ReplaceAllString(gate.For, ""))
			}
		}
		count[strings.Join(components, ", ")]++
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
