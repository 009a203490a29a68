package podrule

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// A True that Readygate did not write is not a decision: see Verdict.Foreign. Every account that may patch pods/status
// can also copy the reason and the latch annotation, so the pod alone is weak evidence. The decisions of a running agent
// are better evidence: see History.

// setBackPauses are the pauses before podgate sets a foreign True back to False, one per attempt. After the last attempt
// podgate leaves the gate as it is: a writer that repeats must not cause endless writes.
var setBackPauses = []time.Duration{0, 2 * time.Second, 8 * time.Second}

// forcedReasons are the reasons with which Readygate sets a gate to True although a component may not be ready.
var forcedReasons = []string{v1alpha1.ReasonDeadline, v1alpha1.ReasonAgentGone, v1alpha1.ReasonRuleDeleted, v1alpha1.ReasonNotSelected}

// isOpenReason reports whether Readygate sets gates to True with this reason.
func isOpenReason(reason string) bool {
	return reason == v1alpha1.ReasonAllReady || slices.Contains(forcedReasons, reason)
}

// History has the decisions of an agent process about one pod. It does not survive a restart: after one, the reason and
// the latch annotation decide whether a True is a decision, and the attempts start again.
type History struct {
	// opened are the last decisions to open gates; nil: closed. A gate that is absent has not been
	// decided yet.
	opened map[string]*opening
	// again is whether the pod had another sandbox before.
	again bool
	// setBacks is the number of writes against a foreign True, and last the time of the last one.
	setBacks int
	last     time.Time
}

// opening is the decision to open a gate: for which sandbox, and whether all components were ready.
type opening struct {
	latchkey.Sandbox
	earned bool
}

// Record adds a decision that is written, or needs no write.
func (h *History) Record(s *Subject, d *Decision, now time.Time) {
	if h.opened == nil {
		h.opened = map[string]*opening{}
	}
	h.again = h.again || d.again
	against := d.Patch != nil && len(d.Patch.Conditions) == 0 && !d.Patch.Touch
	foreign := false
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		h.opened[v.Gate] = nil
		if v.Open {
			h.opened[v.Gate] = &opening{Sandbox: s.Sandbox(), earned: v.earned}
			continue
		}
		foreign = foreign || v.Foreign
		against = against || v.Foreign && d.Patch.writes(v.Gate)
	}
	if foreign && against {
		h.setBacks, h.last = h.setBacks+1, now
	}
}

// RecordUnanswered adds a decision whose write may have happened: the API server did not answer. As after a
// restart, the reason and the latch annotation decide whether a gate of the write that is True is a decision.
func (h *History) RecordUnanswered(s *Subject, d *Decision, now time.Time) {
	h.Record(s, d, now)
	for i := range d.Patch.Conditions {
		delete(h.opened, string(d.Patch.Conditions[i].Type))
	}
}

// resetDue is when the next write against a foreign True may happen. There is always one: the latch key
// is still corrected after the last attempt, at most once per longest pause.
func (h *History) resetDue() time.Time {
	return h.last.Add(setBackPauses[min(h.setBacks, len(setBackPauses)-1)])
}

// isForeign reports whether a gate is True and this is no decision of Readygate.
func (f *facts) isForeign(v *Verdict) bool {
	if !f.isOpen(v.Gate) {
		return false
	}
	opened, known := f.History.opened[v.Gate]
	reason := condition(f.Pod, v.Gate).Reason
	switch {
	case opened != nil: // whatever the reason is now; see openForOtherSandbox
		return false
	case reason == v1alpha1.ReasonAgentGone && f.deadlinesOpen(v): // by the manager; an agent would open it, too
		return false
	case known || !f.keyed:
		return true
	case f.key.Open && (f.key.Always != "" || f.key.Sandbox.Same(f.sandbox)): // the reason is as easy to copy as the key
		return false
	case !isOpenReason(reason):
		return true
	}
	return !f.key.Open && f.key.Sandbox.Same(f.sandbox) && !f.anotherGateClosed(v.Gate)
}

// isEarned reports whether an open gate was opened because all components were ready.
func (f *facts) isEarned(gate string) bool {
	if opened := f.History.opened[gate]; opened != nil {
		return opened.earned
	}
	return !slices.Contains(forcedReasons, condition(f.Pod, gate).Reason)
}

// deadlinesOpen reports whether the deadlines of all rules have passed since the sandbox was ready, and all of them open
// the gate.
func (f *facts) deadlinesOpen(v *Verdict) bool {
	_, opens := f.lateRules(v.Rules, f.sandbox.Since)
	return opens && f.sandbox.Ready()
}

// anotherGateClosed reports whether a closed gate other than this one can be why the latch key is closed. A gate
// that another account has set to True is closed, too.
func (f *facts) anotherGateClosed(gate string) bool {
	return slices.ContainsFunc(Ours(f.Pod), func(other string) bool {
		return other != gate && (!f.isOpen(other) || !isOpenReason(condition(f.Pod, other).Reason))
	})
}

// mayReset reports whether a foreign True may be set back to False, when that is due: a component is known not to be
// ready, the pod has not been Ready in its sandbox, and there is an attempt left.
func (f *facts) mayReset(v *Verdict) bool {
	return v.Undecided() && !f.wasReady() && f.History.setBacks < len(setBackPauses)
}

// wasReady reports whether the pod is Ready or was, in the sandbox that it has. The kubelet adds the condition
// as False before it makes a sandbox; a later transition is one from True.
func (f *facts) wasReady() bool {
	is := condition(f.Pod, string(corev1.PodReady))
	return is != nil && (is.Status == corev1.ConditionTrue || is.LastTransitionTime.After(f.sandbox.Since.Add(time.Second)))
}

// Undecided reports whether the gate is True although a component is known not to be ready. A pod without a
// network and a component without a result do not count: a network plugin that sets the gate itself may be ahead of the
// kubelet.
func (v *Verdict) Undecided() bool {
	return v.Foreign && !v.Open && slices.ContainsFunc(v.Missing, func(m Missing) bool { return m.known })
}

// NeedsLiveRules reports whether the decision must be repeated with rules from a live read: it opens a gate that no cached
// rule has, or closes one that the manager has opened for that reason.
func (d *Decision) NeedsLiveRules(pod *corev1.Pod) bool {
	return d.Patch != nil && slices.ContainsFunc(d.Verdicts, func(v Verdict) bool {
		return len(v.Rules) == 0 || v.Foreign && !v.Open && slices.Contains(abandonedReasons, condition(pod, v.Gate).Reason)
	})
}

// abandonedReasons are the reasons with which a gate is opened that no rule has anymore.
var abandonedReasons = []string{v1alpha1.ReasonRuleDeleted, v1alpha1.ReasonNotSelected}
