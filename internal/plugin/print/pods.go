package print

import (
	"fmt"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/plugin/view"
)

// late is the word for pods that have waited for longer than the deadline of a rule.
const late = "late"

// Pods returns a table with one row per pod and gate, and the counts below it.
func Pods(pods view.Pods, wide bool, now time.Time) Lines {
	header := []string{"NAMESPACE", "NAME", "NODE", "STATE", "GATE", "WAITS", "FOR"} // the longest last: a terminal may cut it
	if wide {
		header = append(header, "RULES", "AGENT")
	}
	var rows [][]string
	for _, p := range pods.Pods {
		for _, row := range podRows(p, now) {
			if wide {
				row.cells = append(row.cells, row.rules, agentWord(p))
			}
			rows = append(rows, row.cells)
		}
	}
	var lines Lines
	if len(rows) > 0 {
		lines.table(header, rows)
		lines.add("")
	}
	lines.add("%s", podTally(pods.Count))
	for _, unseen := range pods.Unseen {
		lines.add("Could not be read: %s", unseen)
	}
	return lines
}

// podRow is one row of the table, with its rules.
type podRow struct {
	cells []string
	rules string
}

// podRows returns the rows of a pod: one per closed gate, one for all open gates, and one per rule whose gate it does
// not have.
func podRows(p view.Pod, now time.Time) []podRow {
	var rows []podRow
	add := func(state, gate, waits, why string, rules ...string) {
		rows = append(rows, podRow{[]string{p.Namespace, p.Name, p.Node, state, gate, waits, why}, strings.Join(rules, ",")})
	}
	var open, by []string
	for _, g := range p.Gates {
		if !g.Waits() {
			open, by = append(open, g.Name), append(by, g.Rules...)
			continue
		}
		state, waits := string(view.PodWaiting), ""
		if g.Late {
			state += ", " + late
		}
		if !g.Since.IsZero() {
			waits = view.Age(g.Since, now)
		}
		add(state, g.Name, waits, g.For, g.Rules...)
	}
	if p.State == view.PodOpen {
		add(string(view.PodOpen), strings.Join(open, ","), "", "", by...)
	}
	for _, u := range p.Ungated {
		add(string(view.PodUngated), "", "", "not gated: "+u.Why, u.Rule)
	}
	return rows
}

// agentWord returns the state of the agent of the pod's node in one word.
func agentWord(p view.Pod) string {
	switch {
	case !p.Agent.Known:
		return ""
	case p.Agent.Alive:
		return "alive"
	case p.Agent.Renewed.IsZero():
		return "none"
	}
	return "gone"
}

// podTally returns the numbers of waiting, open, ungated and late pods.
func podTally(c view.PodCount) string {
	text := fmt.Sprintf("%s that rules select: %d waiting, %d open, %d ungated", count(c.All(), "pod"), c.Waiting, c.Open, c.Ungated)
	if c.Late > 0 {
		text += fmt.Sprintf("; %d %s", c.Late, late)
	}
	return text
}
