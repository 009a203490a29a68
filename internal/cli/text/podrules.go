package text

import (
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/view"
)

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
	if len(below) > 0 {
		lines.add("")
		lines = append(lines, below...)
	}
	return lines
}
