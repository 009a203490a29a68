package podrule

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// Orphan decides about a pod on a node without a live agent: it opens gates that no rule has anymore, and gates whose
// deadlines have passed and open them. It never closes a gate.
func Orphan(rules []*Rule, s *Subject, now time.Time) Decision {
	d := Decide(rules, s, nil, now)
	d.Probes, d.Patch = nil, nil
	for i := range d.Verdicts {
		if v := &d.Verdicts[i]; v.Open && v.Reason == v1alpha1.ReasonDeadline {
			v.Reason, v.Message = v1alpha1.ReasonAgentGone, agentGoneWords(v)
		}
	}
	opened, reason := d.opening(s, now)
	key := ""
	if reason != "" {
		key = forGood(s.Pod, reason, len(opened) > 0)
	}
	if len(opened) > 0 || key != "" {
		d.Patch = &Patch{Conditions: opened, Key: key}
	}
	return d
}

// opening are the conditions of gates to open, and why the latch is to be opened; an empty reason if it is not.
func (d *Decision) opening(s *Subject, now time.Time) (opened []corev1.PodCondition, reason string) {
	key, _ := latchkey.Parse(s.Pod.Annotations[v1alpha1.LatchAnnotation])
	waits := false // the latch must stay closed, despite any reason to open it
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		is := condition(s.Pod, v.Gate)
		switch {
		case !v.Open && v.Reason == v1alpha1.ReasonNewSandbox && overdue(v):
			reason = v1alpha1.ReasonAgentGone // it is open; its latch waits in the new sandbox
		case !v.Open:
			waits = waits || holdsStart(v)
		case is == nil || is.Status != corev1.ConditionTrue || v.Foreign:
			opened, reason = append(opened, openCondition(v, now)), v.Reason
		case len(v.Rules) == 0:
			reason = v.Reason
		case key.Open:
			waits = true // its key is good for the sandbox that it has
		case is.Reason == v1alpha1.ReasonAgentGone:
			reason = v.Reason // its key was not written: another gate was closed, or the annotations were full
		}
	}
	if waits {
		reason = ""
	}
	return opened, reason
}

// overdue reports whether the deadlines of all rules have passed, and all of them open the gate.
func overdue(v *Verdict) bool {
	return len(v.Late) == len(v.Rules) && !slices.ContainsFunc(v.Late, func(r *Rule) bool { return !r.OpenLate })
}

// forGood is the key that opens the latch for every sandbox; empty if the pod has no latch, or nothing needs to be
// written.
func forGood(pod *corev1.Pod, reason string, writes bool) string {
	if was, _ := latchkey.Parse(pod.Annotations[v1alpha1.LatchAnnotation]); was.Always != "" || !HasLatch(pod) && !writes {
		return ""
	}
	return latchkey.Always(reason).String()
}

func openCondition(v *Verdict, now time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodConditionType(v.Gate), Status: corev1.ConditionTrue, Reason: v.Reason, Message: v.Message, LastTransitionTime: metav1.NewTime(now)}
}

// Abandoned decides only about gates that no rule has anymore: it opens them, with or without a live agent.
func Abandoned(rules []*Rule, s *Subject, now time.Time) Decision {
	d := Orphan(rules, s, now)
	if d.Patch == nil {
		return d
	}
	d.Patch.Conditions = slices.DeleteFunc(d.Patch.Conditions, func(c corev1.PodCondition) bool { return c.Reason == v1alpha1.ReasonAgentGone })
	if slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return len(v.Rules) > 0 }) {
		d.Patch.Key = "" // the agent of the node writes the key
	}
	if len(d.Patch.Conditions) == 0 && d.Patch.Key == "" {
		d.Patch = nil
	}
	return d
}
