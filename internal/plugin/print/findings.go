package print

import (
	"fmt"
	"strings"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// Findings returns the findings of lint and a summary line.
func Findings(report *lint.Report) Lines {
	var lines Lines
	for _, f := range report.Findings {
		where := strings.Fields(strings.Join([]string{f.File, f.Object, f.Field}, " "))
		lines.add("%s: %s: %s", f.Severity, strings.Join(where, " "), f.Message)
		if f.Do != "" {
			lines.add("    %s", f.Do)
		}
	}
	if len(lines) > 0 {
		lines.add("")
	}
	lines.add("%s", summary(report))
	return lines
}

func summary(report *lint.Report) string {
	text := fmt.Sprintf("%s in %s: %s, %s", count(report.Judged, "rule"), count(report.Objects, "object"),
		count(report.Count(lint.Error), "error"), count(report.Count(lint.Warning), "warning"))
	if report.Judged == 0 {
		text += ". No NodeReadinessRule or PodReadinessRule found: is it the right file, or is -R missing?"
	}
	return text
}
