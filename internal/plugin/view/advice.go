package view

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

// staleHeartbeat is the age from which the advice mentions a heartbeat. The reporter's default period is five
// minutes.
const staleHeartbeat = 11 * time.Minute

// advice returns the next steps, most important first.
func (s Explanation) advice(now time.Time) []string {
	var next []string
	add := func(format string, args ...any) { next = append(next, fmt.Sprintf(format, args...)) }
	var unapplied []string
	for _, c := range s.Chapters {
		switch {
		case c.Refused != "":
			add("The API server rejects changes of this node for rule %s; change the policy, the role or the rule: %s", c.Rule, c.Refused)
		case c.Problem != "":
			add("Rule %s has no effect: %s", c.Rule, c.Problem)
		case c.Preview && c.Held:
			add("Rule %s is a dry run and will not release this node: enforce the rule (kubectl patch nrr %s --type merge -p '{\"spec\":{\"dryRun\":false}}') or delete it", c.Rule, c.Rule)
		case !c.Settled && !c.Preview:
			unapplied = append(unapplied, c.Rule)
		}
		if c.Blocked != "" && c.Held {
			add("%s", c.Blocked)
		}
		if !c.Preview {
			next = append(next, s.remedies(c, now)...)
		}
	}
	if len(unapplied) > 0 {
		add("Not applied to this node yet: rule %s. If this persists, check that a manager runs and holds the lease: kubectl get pods,lease -n readygate-system", strings.Join(unapplied, ", "))
	}
	if s.Ready != corev1.ConditionTrue {
		add("The kubelet does not report the node as Ready: kubectl describe node %s", s.Name)
	}
	if s.Unschedulable {
		add("The node is cordoned. If this is no longer needed: kubectl uncordon %s", s.Name)
	}
	if others := s.foreign(); len(others) > 0 {
		add("Taints that belong to no rule also keep pods away: %s", strings.Join(others, ", "))
	}
	return next
}

// foreign returns the taints that belong to no rule, without the taint of a cordon.
func (s Explanation) foreign() []string {
	var others []string
	for _, taint := range s.OtherTaints {
		if !strings.HasPrefix(taint, corev1.TaintNodeUnschedulable+":") {
			others = append(others, taint)
		}
	}
	return others
}

// remedies returns the steps for the unmet requirements of a rule, if the rule may hold the node.
func (s Explanation) remedies(c Chapter, now time.Time) []string {
	var next []string
	pods := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + s.Name
	for _, r := range c.Requirements {
		silent := ""
		if !r.Heartbeat.IsZero() && now.Sub(r.Heartbeat) > staleHeartbeat {
			silent = fmt.Sprintf("The last heartbeat of %s was %s ago; its reporter may not be running. ", r.Type, Age(r.Heartbeat, now))
		}
		switch {
		case c.Completed, c.State == noderule.NotSelected, c.Cause == noderule.CauseDependency, c.Cause == noderule.CauseNotReady:
		case r.Met && silent != "":
			next = append(next, silent+"The last reported status still counts. Check that the reporter runs on this node: "+pods)
		case r.Met, c.State != noderule.Held && !c.releasedAnyway():
		case r.Absent:
			next = append(next, fmt.Sprintf("%s has not been reported on this node, which is %s old. Check that its reporter runs on this node and tolerates the taint %s: %s",
				r.Type, Age(s.Created, now), c.Taint, pods))
		case r.WhyUnknown != "":
			writer := ""
			if r.Writer != "" {
				writer = " (last written by " + r.Writer + ")"
			}
			next = append(next, fmt.Sprintf("%s counts as Unknown: %s%s. Check that its reporter runs on this node: %s", r.Type, r.WhyUnknown, writer, pods))
		default:
			next = append(next, silent+unmet(r, now)+". Check that component on this node: "+pods)
		}
	}
	if c.AnyOf && c.State == noderule.Held && len(next) > 1 {
		next = append(next, "Rule "+c.Rule+" requires only one of these conditions (anyOf).")
	}
	return next
}

// unmet describes the current status of a condition, with its reason and its writer.
func unmet(r Requirement, now time.Time) string {
	text := fmt.Sprintf("%s is %s%s", r.Type, r.Current, forHow(r.Since, now))
	if said := strings.TrimSpace(r.Reason + " " + r.Message); said != "" {
		text += " (" + said + ")"
	}
	if r.Writer != "" {
		text += ", written by " + r.Writer
	}
	return text
}
