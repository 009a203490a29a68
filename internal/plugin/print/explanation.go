package print

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/plugin/view"
)

// Explanation returns the explanation of one node.
func Explanation(s view.Explanation, now time.Time) Lines {
	var lines Lines
	lines.add("%s.", s.Headline)
	for _, c := range s.Chapters {
		lines.chapter(c, now)
	}
	lines.node(s, now)
	lines.events(s.Events, now)
	lines.list("What to do", s.Next)
	lines.list("Could not be read", s.Unseen)
	return lines
}

func (l *Lines) chapter(c view.Chapter, now time.Time) {
	l.heading("Rule %s (%s, taint %s)", c.Rule, c.Mode, c.Taint)
	l.add("  It %s.", c.Text)
	if c.AnyOf {
		l.add("  Only one of its requirements must be met (anyOf).")
	}
	if c.Stuck && c.Held {
		l.add("  It has held this node for longer than its progressDeadlineSeconds: the node is stuck.")
	}
	if !c.Until.IsZero() {
		l.add("  If its requirements remain met, the node is released at %s.", c.Until.In(now.Location()).Format(time.TimeOnly))
	}
	for _, r := range c.Requirements {
		l.requirement(r, now)
	}
	if c.Refused != "" {
		l.add("  The API server rejects writes to this node: %s", c.Refused)
	}
}

func (l *Lines) requirement(r view.Requirement, now time.Time) {
	mark := "missing"
	if r.Met {
		mark = "met"
	}
	text := "is " + string(r.Current)
	switch {
	case r.Default:
		text = "is not reported and counts as " + string(r.Current) + " (defaultStatus)"
	case r.Absent:
		text = "is not reported"
	case r.WhyUnknown != "":
		text += " (" + r.WhyUnknown + ")"
	}
	l.add("  %-7s  %s %s, must be %s", mark, r.Type, text, r.Required)
	if r.Absent {
		return
	}
	l.details(r.Since, r.Heartbeat, r.Writer, strings.TrimSpace(r.Reason+" "+r.Message), now)
}

// details adds a line about a condition: since when, last heartbeat, writer and message, as far as they are known.
func (l *Lines) details(since, heartbeat time.Time, writer, message string, now time.Time) {
	var parts []string
	if !since.IsZero() {
		parts = append(parts, "unchanged for "+view.Age(since, now))
	}
	if !heartbeat.IsZero() {
		parts = append(parts, "last heartbeat "+view.Age(heartbeat, now)+" ago")
	}
	if writer != "" {
		parts = append(parts, "written by "+writer)
	}
	if message != "" {
		parts = append(parts, message)
	}
	if len(parts) > 0 {
		l.add("           %s", strings.Join(parts, "; "))
	}
}

// node adds what keeps pods away other than rules.
func (l *Lines) node(s view.Explanation, now time.Time) {
	l.heading("Node")
	text := "Ready is " + string(s.Ready)
	if s.Unschedulable {
		text += ", cordoned"
	}
	l.add("  %s, %s old", text, view.Age(s.Created, now))
	if len(s.OtherTaints) > 0 {
		l.add("  Taints that belong to no rule: %s", strings.Join(s.OtherTaints, ", "))
	}
}

func (l *Lines) events(events []view.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	l.heading("Events")
	for _, e := range events {
		text := fmt.Sprintf("  %s ago  %s: %s", view.Age(e.At, now), e.Reason, e.Note)
		if e.Type == corev1.EventTypeWarning {
			text += " (Warning)"
		}
		if e.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Count)
		}
		l.add("%s", text)
	}
}

// list adds a heading and its entries; nothing if there are no entries.
func (l *Lines) list(heading string, entries []string) {
	if len(entries) == 0 {
		return
	}
	l.heading("%s", heading)
	for _, entry := range entries {
		l.add("  - %s", entry)
	}
}
