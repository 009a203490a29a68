package print

import (
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Status is all rules, those of nodes first, and what could not be seen.
func Status(rules []view.Rule, podRules []view.PodRule, unseen []string, wide bool, now time.Time) Lines {
	var lines Lines
	if len(rules) > 0 || len(podRules) == 0 {
		lines = Rules(rules, wide, now)
	}
	if len(podRules) > 0 {
		lines.below(PodRules(podRules, wide, now))
	}
	for _, what := range unseen {
		lines.add("Not seen: %s", what)
	}
	return lines
}

// PodRules is a line a rule of pods, and below them what those say that are not enforced.
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
		if r.Standing != v1alpha1.ReasonEnforced {
			below.add("%s is %s: %s", r.Name, r.Standing, r.Message)
		}
	}
	var lines Lines
	lines.table(header, rows)
	lines.below(below)
	return lines
}
