package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/view"
)

// Nodes is a line a node.
func Nodes(nodes []view.Node, wide bool, now time.Time) Lines {
	header := []string{"NAME", "STATE", "HELD FOR", "AGE", "HELD BY", "MISSING"} // the longest last: a screen may cut it
	if wide {
		header = append(header, "READY", "OTHER TAINTS")
	}
	var rows [][]string
	for _, n := range nodes {
		row := []string{n.Name, state(n), since(n, now), view.Age(n.Created, now), strings.Join(holders(n), ","), missing(n)}
		if wide {
			ready := string(n.Ready)
			if n.Unschedulable {
				ready += " (cordoned)"
			}
			row = append(row, ready, strings.Join(n.OtherTaints, ","))
		}
		rows = append(rows, row)
	}
	var lines Lines
	lines.table(header, rows)
	return lines
}

// Change is one line about a node that changed.
func Change(n view.Node, now time.Time) string {
	var line Lines
	line.add("%s %s %s%s", now.Format(time.TimeOnly), n.Name, state(n), because(n))
	return line[0]
}

// Gone is one line about a node that is no longer there.
func Gone(name string, now time.Time) string {
	var line Lines
	line.add("%s %s is gone", now.Format(time.TimeOnly), name)
	return line[0]
}

// Tally is how many nodes are held and released.
func Tally(nodes []view.Node) string {
	states := map[readiness.State]int{}
	for _, n := range nodes {
		states[n.State]++
	}
	return fmt.Sprintf("%s: %d held, %d released, %d not selected",
		count(len(nodes), "node"), states[readiness.Held], states[readiness.Released], states[readiness.NotSelected])
}

// state is the word for a node; one that is not yet as rules want it says so.
func state(n view.Node) string {
	if !n.Settled {
		return string(n.State) + ", changing"
	}
	return string(n.State)
}

// holders are the rules that hold the node.
func holders(n view.Node) []string {
	var names []string
	for _, s := range n.Rules {
		if s.Held {
			names = append(names, s.Rule)
		}
	}
	return names
}

// missing is what holds the node back, over all rules that are enforced.
func missing(n view.Node) string {
	var parts []string
	for _, s := range n.Rules {
		if s.Preview && !s.Held {
			continue
		}
		for _, m := range s.Missing {
			current := string(m.Current)
			if m.Absent {
				current = "not reported"
			}
			parts = append(parts, m.Type+" is "+current)
		}
	}
	return strings.Join(parts, ", ")
}

func because(n view.Node) string {
	text := ""
	if names := holders(n); len(names) > 0 {
		text = " by " + strings.Join(names, ", ")
	}
	if reason := missing(n); reason != "" {
		text += ": " + reason
	}
	return text
}

func since(n view.Node, now time.Time) string {
	switch {
	case n.State != readiness.Held:
		return ""
	case n.Since.IsZero():
		return "unknown"
	}
	return view.Age(n.Since, now)
}
