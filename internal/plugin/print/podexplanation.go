package print

import (
	"fmt"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/plugin/view"
)

// PodExplanation returns the explanation of one pod.
func PodExplanation(s view.PodExplanation, now time.Time) Lines {
	var lines Lines
	lines.add("%s.", s.Headline)
	for _, c := range s.Chapters {
		lines.gate(c, now)
	}
	for _, u := range s.Ungated {
		lines.heading("Rule %s (gate %s)", u.Rule, u.Gate)
		lines.add("  It selects this pod, but the pod does not carry its gate: %s.", u.Why)
	}
	lines.passed(s.Passed)
	lines.pod(s, now)
	lines.events(s.Events, now)
	lines.list("What to do", s.Next)
	lines.list("Could not be read", s.Unseen)
	return lines
}

func (l *Lines) gate(c view.GateChapter, now time.Time) {
	rules := "belongs to no rule"
	if len(c.Rules) > 0 {
		rules = "rule " + strings.Join(c.Rules, ", ")
	}
	l.heading("Gate %s (%s)", c.Name, rules)
	l.add("  It %s.", c.Text)
	switch {
	case c.Late:
		l.add("  The pod waits for longer than deadlineSeconds: it is late.")
	case !c.Due.IsZero():
		l.add("  The pod is late at %s (deadlineSeconds).", c.Due.In(now.Location()).Format(time.TimeOnly))
	}
	for _, component := range c.Components {
		l.component(component, len(c.Rules) > 1, now)
	}
}

// componentWords are the words for the state of a component.
var componentWords = map[view.Result]string{view.ResultReady: "ready", view.ResultNotReady: "missing", view.ResultUnknown: "unknown"}

func (l *Lines) component(c view.Component, several bool, now time.Time) {
	name := c.Name
	if several {
		name = c.Rule + "/" + c.Name
	}
	text := fmt.Sprintf("  %-7s  %s, %s", componentWords[c.Result], name, c.How)
	if c.Why != "" {
		text += ": " + c.Why
	}
	l.add("%s", text)
	l.details(c.Since, time.Time{}, c.Writer, "", now)
}

// passed adds why each rule does not select the pod.
func (l *Lines) passed(rules []view.Passed) {
	if len(rules) == 0 {
		return
	}
	l.heading("Rules that do not select this pod")
	for _, rule := range rules {
		l.add("  %s: %s", rule.Rule, rule.Why)
	}
}

// pod adds the pod's readiness, latch and agent.
func (l *Lines) pod(s view.PodExplanation, now time.Time) {
	l.heading("Pod")
	l.add("  Ready is %s, %s old", s.Ready, view.Age(s.Created, now))
	if len(s.OtherGates) > 0 {
		l.add("  Closed gates that belong to no rule: %s", strings.Join(s.OtherGates, ", "))
	}
	if len(s.Chapters) > 0 || s.Latch.State != view.LatchNone {
		l.add("  Latch: it %s", s.Latch.Text)
		if s.Latch.Key != "" {
			l.add("         its key is: %s", s.Latch.Key)
		}
		if s.Latch.Problem != "" {
			l.add("         its container does not run: %s", s.Latch.Problem)
		}
	}
	if s.Node != "" {
		l.add("  Agent: %s", agentText(s.Pod, now))
	}
}

// agentText describes the agent of the pod's node.
func agentText(p view.Pod, now time.Time) string {
	switch a := p.Agent; {
	case !a.Known:
		return "the state of the agent of node " + p.Node + " is unknown"
	case a.Renewed.IsZero():
		return "node " + p.Node + " has no agent, or the agent has never renewed its Lease"
	case !a.Alive:
		return fmt.Sprintf("the agent of node %s is gone: it last renewed its Lease %s ago", p.Node, view.Age(a.Renewed, now))
	case a.Version != "":
		return fmt.Sprintf("the agent of node %s is alive: it renewed its Lease %s ago (version %s)", p.Node, view.Age(a.Renewed, now), a.Version)
	default:
		return fmt.Sprintf("the agent of node %s is alive: it renewed its Lease %s ago", p.Node, view.Age(a.Renewed, now))
	}
}
