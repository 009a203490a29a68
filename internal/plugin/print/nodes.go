package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Nodes returns a table with one row per node.
func Nodes(nodes []view.Node, wide bool, now time.Time) Lines {
	header := []string{"NAME", "STATE", "HELD FOR", "AGE", "HELD BY", "MISSING"} // the longest last: a terminal may cut it
	if wide {
		header = append(header, "READY", "OTHER TAINTS")
	}
	var rows [][]string
	for _, n := range nodes {
		row := []string{n.Name, state(n), since(n, now), view.Age(n.Created, now), strings.Join(holders(n), ","), strings.Join(reasons(n, now), ", ")}
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

// Change returns one line about a changed node.
func Change(n view.Node, now time.Time) string {
	return terminal.Clean(fmt.Sprintf("%s %s %s%s", now.Format(time.TimeOnly), n.Name, state(n), because(n, now)))
}

// Gone returns one line about a deleted node.
func Gone(name string, now time.Time) string {
	return terminal.Clean(now.Format(time.TimeOnly) + " " + name + " is gone")
}

// Tally returns the numbers of held, released, stuck and limited nodes.
func Tally(nodes []view.Node) string {
	states, words := map[noderule.State]int{}, map[string]int{}
	for _, n := range nodes {
		states[n.State]++
		for _, word := range harm(n) {
			words[word]++
		}
	}
	parts := []string{fmt.Sprintf("%s: %d held, %d released, %d not selected",
		count(len(nodes), "node"), states[noderule.Held], states[noderule.Released], states[noderule.NotSelected])}
	for _, word := range []string{stuck, limited} {
		if words[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", words[word], word))
		}
	}
	return strings.Join(parts, "; ")
}

// state returns the state of a node, and whether it is stuck, limited or about to change.
func state(n view.Node) string {
	words := append([]string{string(n.State)}, harm(n)...)
	if !n.Settled {
		words = append(words, "changing")
	}
	return strings.Join(words, ", ")
}

// holders returns the rules that hold the node.
func holders(n view.Node) []string {
	var names []string
	for _, s := range n.Rules {
		if s.Held {
			names = append(names, s.Rule)
		}
	}
	return names
}

// reasons returns why the enforced rules hold the node.
func reasons(n view.Node, now time.Time) []string {
	var parts []string
	for _, s := range n.Rules {
		if s.Preview && !s.Held {
			continue
		}
		if cause := causeOf(s, now); cause != "" {
			parts = append(parts, cause)
		}
		for _, m := range s.Missing {
			parts = append(parts, m.Type+" is "+m.Value())
		}
	}
	return parts
}

func because(n view.Node, now time.Time) string {
	text := ""
	if names := holders(n); len(names) > 0 {
		text = " by " + strings.Join(names, ", ")
	}
	if all := reasons(n, now); len(all) > 0 {
		text += ": " + strings.Join(all, ", ")
	}
	return text
}

func since(n view.Node, now time.Time) string {
	switch {
	case n.State != noderule.Held:
		return ""
	case n.Since.IsZero():
		return "unknown"
	}
	return view.Age(n.Since, now)
}

// The words for nodes that a rule has held for longer than its deadline, and for nodes that are released only because
// of maxUnavailable.
const (
	stuck   = "stuck"
	limited = "limited"
)

// harm returns the words stuck and limited, if they apply to the node.
func harm(n view.Node) []string {
	words := map[string]bool{}
	for _, s := range n.Rules {
		if enforced := !s.Preview || s.Held; enforced {
			words[stuck] = words[stuck] || s.Stuck
			words[limited] = words[limited] || !s.Stuck && s.Cause == noderule.CauseLimit
		}
	}
	return slices.DeleteFunc([]string{stuck, limited}, func(word string) bool { return !words[word] })
}

// causeOf returns the reason if the verdict does not follow from the requirements alone; else empty.
func causeOf(s view.Standing, now time.Time) string {
	switch s.Cause {
	case noderule.CauseMinReady:
		return fmt.Sprintf("%s is met, %s left until %s (minReadySeconds)", s.Rule, view.Age(now, s.Until), s.Until.In(now.Location()).Format(time.TimeOnly))
	case noderule.CauseNotReady:
		return "not Ready, may return from a reboot"
	case noderule.CauseLimit:
		return s.Rule + " would hold it (maxUnavailable)"
	case noderule.CauseDeadline:
		return "released at the deadline of " + s.Rule
	case noderule.CauseDependency:
		return s.Rule + " waits for rule " + s.WaitsFor
	}
	return ""
}
