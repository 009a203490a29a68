package view

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/readiness"
)

// quiet is how long a condition may be without a heartbeat before somebody should look: the
// reporter's own default is five minutes.
const quiet = 11 * time.Minute

// advice is what to do next, most important first.
func (s Story) advice(now time.Time) []string {
	var next []string
	add := func(format string, args ...any) { next = append(next, fmt.Sprintf(format, args...)) }
	for _, c := range s.Chapters {
		switch {
		case c.Refused != "":
			add("The API server refuses to change this node for rule %s: %s", c.Rule, c.Refused)
		case c.Problem != "":
			add("Rule %s does nothing: %s", c.Rule, c.Problem)
		case !c.Settled && !c.Preview:
			add("Rule %s is not applied to this node yet. That takes a moment; if it stays so, see whether a manager runs and leads: kubectl get pods,lease -n readygate-system", c.Rule)
		}
		if c.State == readiness.Held && !c.Preview {
			next = append(next, s.mend(c, now)...)
		}
	}
	if s.Ready != corev1.ConditionTrue {
		add("The kubelet does not say that the node is Ready: kubectl describe node %s", s.Name)
	}
	if s.Unschedulable {
		add("The node is cordoned. If nobody needs that any more: kubectl uncordon %s", s.Name)
	}
	if others := s.foreign(); len(others) > 0 {
		add("Taints that are of no rule keep pods away too: %s", strings.Join(others, ", "))
	}
	return next
}

// foreign are other taints, without the one that says no more than that the node is cordoned.
func (s Story) foreign() []string {
	var others []string
	for _, taint := range s.OtherTaints {
		if !strings.HasPrefix(taint, corev1.TaintNodeUnschedulable+":") {
			others = append(others, taint)
		}
	}
	return others
}

// mend says what to do about the requirements that a rule misses.
func (s Story) mend(c Chapter, now time.Time) []string {
	var next []string
	pods := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + s.Name
	for _, r := range c.Requirements {
		switch {
		case r.Met:
		case r.Absent:
			next = append(next, fmt.Sprintf("Nobody has reported %s on this node in the %s of its life. See whether what reports it runs here, and tolerates the taint %s: %s",
				r.Type, Age(s.Created, now), c.Taint, pods))
		default:
			text := fmt.Sprintf("%s is %s%s", r.Type, r.Current, forHow(r.Since, now))
			if said := strings.TrimSpace(r.Reason + " " + r.Message); said != "" {
				text += " (" + said + ")"
			}
			if r.Writer != "" {
				text += ", as " + r.Writer + " says"
			}
			text += ". Look at that component on this node: " + pods
			if !r.Heartbeat.IsZero() && now.Sub(r.Heartbeat) > quiet {
				text = fmt.Sprintf("%s was last heard of %s ago: what reports it may be dead. ", r.Type, Age(r.Heartbeat, now)) + text
			}
			next = append(next, text)
		}
	}
	if c.AnyOf && len(next) > 1 {
		next = append(next, "One of these is enough for rule "+c.Rule+" (anyOf).")
	}
	return next
}
