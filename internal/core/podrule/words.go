package podrule

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/text"
)

// Messages of conditions are constant while nothing changes: each change is a write.

// waitingWords names the components that are not ready.
func waitingWords(missing []Missing) string {
	several := false
	for _, m := range missing {
		several = several || m.Rule != missing[0].Rule
	}
	parts := make([]string, len(missing))
	for i, m := range missing {
		parts[i] = m.Component
		if several {
			parts[i] = m.Rule + "/" + m.Component
		}
		if m.Why != "" {
			parts[i] += " (" + m.Why + ")"
		}
	}
	return text.Cut("waiting for "+strings.Join(parts, ", "), text.Condition)
}

// allReadyWords names the rules whose components are all ready.
func allReadyWords(rules []*Rule) string {
	names := make([]string, len(rules))
	components := 0
	for i, rule := range rules {
		names[i] = rule.Name
		components += len(rule.Components)
	}
	is := "are"
	if components == 1 {
		is = "is"
	}
	return text.Cut(fmt.Sprintf("%s of %s %s ready", counted(components, "component"), ruleWords(names), is), text.Condition)
}

func lateWords(v *Verdict) string {
	deadline := v.Late[0].Deadline
	for _, rule := range v.Late {
		deadline = max(deadline, rule.Deadline)
	}
	return text.Cut(fmt.Sprintf("opened after the deadline of %s, still %s", deadline, waitingWords(v.Missing)), text.Condition)
}

func abandonedWords(reason string) string {
	switch reason {
	case v1alpha1.ReasonNotSelected:
		return "no PodReadinessRule selects the pod anymore"
	default:
		return "the PodReadinessRule of this gate was deleted"
	}
}

func agentGoneWords(v *Verdict) string {
	names := make([]string, len(v.Rules))
	for i, rule := range v.Rules {
		names[i] = rule.Name
	}
	return text.Cut(fmt.Sprintf("opened because the node has no live podgate agent and the deadline of %s has passed; the state of the pod's network is unknown", ruleWords(names)), text.Condition)
}

func ruleWords(names []string) string {
	if len(names) == 1 {
		return "rule " + names[0]
	}
	return "rules " + strings.Join(names, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("all %d %ss", n, what)
}

// statusWords describes a condition that does not have the required status.
func statusWords(kind string, status corev1.ConditionStatus, reason string) string {
	if reason != "" {
		return fmt.Sprintf("condition %s is %s, %s", kind, status, text.Cut(reason, 64))
	}
	return fmt.Sprintf("condition %s is %s", kind, status)
}
