package print

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Status returns all rules, NodeReadinessRules first, and what could not be read.
func Status(rules []view.Rule, podRules []view.PodRule, unseen []string, wide bool, now time.Time) Lines {
	var lines Lines
	if len(rules) > 0 || len(podRules) == 0 {
		lines = Rules(rules, wide, now)
	}
	if len(podRules) > 0 {
		lines.below(PodRules(podRules, wide, now))
	}
	for _, what := range unseen {
		lines.add("Could not be read: %s", what)
	}
	return lines
}

// Rules returns a table with one row per rule, and below it the messages of rules that are not enforced.
func Rules(rules []view.Rule, wide bool, now time.Time) Lines {
	var lines Lines
	if len(rules) == 0 {
		lines.add("No rules. Apply one, e.g. kubectl apply -f examples/cni-readiness/network-readiness-rule.yaml")
		return lines
	}
	header := []string{"NAME", "TAINT", "MODE", "SELECTED", "HELD", "RELEASED", "STANDING", "AT-CREATION", "AGE"}
	if wide {
		header = append(header, "REQUIREMENTS", "SELECTOR", "BLOCKED BY")
	}
	var rows [][]string
	for _, r := range rules {
		row := []string{
			r.Name, r.Taint, string(r.Mode),
			strconv.Itoa(r.Count.Selected), including(r.Count.Held, r.Count.Stuck, stuck), including(r.Count.Released, r.Count.Limited, limited),
			r.Standing, r.AtCreation, view.Age(r.Created, now),
		}
		if wide {
			row = append(row, requirements(r), r.Selector, blockers(r.Count.Blocked))
		}
		rows = append(rows, row)
	}
	lines.table(header, rows)
	lines.messages(rules, wide)
	return lines
}

// messages adds one line per problem that needs the user's action.
func (l *Lines) messages(rules []view.Rule, wide bool) {
	var below Lines
	others := ""
	for _, r := range rules {
		if r.Others != "" && r.Others != others { // it is the same for every rule
			others = r.Others
			below.add("Other controllers: %s", others)
		}
		if r.Standing != v1alpha1.ReasonEnforced && r.Message != "" {
			below.add("%s is %s: %s", r.Name, r.Standing, r.Message)
		}
		if r.Blocked != "" {
			below.add("%s, reporters: %s", r.Name, r.Blocked)
		}
		for _, refused := range r.Refused {
			below.add("%s cannot write node %s: %s", r.Name, refused.Node, refused.Message)
		}
		if (wide && r.AtCreation != v1alpha1.ReasonPolicyActive || r.AtCreation == v1alpha1.ReasonPolicyOutdated) && r.AtCreationMessage != "" {
			below.add("%s, at creation: %s", r.Name, r.AtCreationMessage)
		}
	}
	l.below(below)
}

// including returns e.g. "2", or "2 (1 stuck)".
func including(n, of int, word string) string {
	text := strconv.Itoa(n)
	if of > 0 {
		text += fmt.Sprintf(" (%d %s)", of, word)
	}
	return text
}

func requirements(r view.Rule) string {
	if r.AnyOf {
		return strings.Join(r.Requirements, " or ")
	}
	return strings.Join(r.Requirements, ",")
}

// blockers returns the unmet requirements, each with the number of nodes that it holds.
func blockers(blocked map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(blocked)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, blocked[name]))
	}
	return strings.Join(parts, ",")
}

// PodRules returns a table with one row per PodReadinessRule, and below it the messages of rules that are not enforced.
func PodRules(rules []view.PodRule, wide bool, now time.Time) Lines {
	header := []string{"NAME", "GATE", "GATED", "OPEN", "WAITING", "UNGATED", "STANDING", "AGE"}
	if wide {
		header = append(header, "STARTHOLD", "COMPONENTS")
	}
	var rows [][]string
	var below Lines
	for _, r := range rules {
		row := []string{
			r.Name, r.Gate, strconv.Itoa(int(r.Count.Gated)), strconv.Itoa(int(r.Count.Open)),
			including(int(r.Count.Waiting), int(r.Count.Late), late), strconv.Itoa(int(r.Count.Ungated)), r.Standing, view.Age(r.Created, now),
		}
		if wide {
			row = append(row, strconv.FormatBool(r.StartHold), strings.Join(r.Components, ","))
		}
		rows = append(rows, row)
		if r.Standing != podv1alpha1.ReasonEnforced {
			below.add("%s is %s: %s", r.Name, r.Standing, r.Message)
		}
	}
	var lines Lines
	lines.table(header, rows)
	lines.below(below)
	return lines
}
