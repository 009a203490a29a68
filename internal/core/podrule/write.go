package podrule

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// patch builds what to write; nil if nothing is. It also sets what the decision contains about the latch.
func (d *decider) patch() *Patch {
	var changed []corev1.PodCondition
	for i := range d.Verdicts {
		switch want, due := d.conditionOf(&d.Verdicts[i]); {
		case want == nil:
		case d.reached(due):
			changed = append(changed, *want)
		default:
			d.wakeAt(due)
		}
	}
	key := d.touch(d.keyOf(d.Verdicts))
	touched := key.Touches > d.key.Touches
	is, has := d.Pod.Annotations[v1alpha1.LatchAnnotation]
	switch {
	case len(d.Verdicts) == 0:
		return nil
	case len(changed) > 0 || touched:
	case key.String() == is:
		return nil
	case !has && !slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return v.Open }):
		return nil // no gate is open, and none is closed
	case d.keyStillHolds(key):
		return nil
	default:
		if due := d.keyDue(key); !d.reached(due) {
			d.wakeAt(due)
			return nil
		}
	}
	return &Patch{Conditions: changed, Key: key.String(), Touch: touched}
}

// conditionOf returns the condition to write for a verdict, and when it is due; nil if no write is necessary.
func (f *facts) conditionOf(v *Verdict) (want *corev1.PodCondition, due time.Time) {
	c := openCondition(v, f.now)
	if !v.Open {
		c.Status, c.LastProbeTime = corev1.ConditionFalse, metav1.NewTime(f.now)
	}
	is := condition(f.Pod, v.Gate)
	switch {
	case is == nil && v.Open:
		return &c, time.Time{}
	case is == nil:
		if v.Waits.IsZero() || v.Unasked { // the kubelet reports what a pod without a sandbox waits for
			return nil, time.Time{}
		}
		c.LastTransitionTime = metav1.NewTime(v.Waits) // not when it was written
		return &c, v.Waits.Add(writeDelay)
	case is.Status == c.Status:
		c.LastTransitionTime = is.LastTransitionTime
		return f.messageOf(v, is, &c)
	case v.Foreign:
		if !f.mayReset(v) {
			return nil, time.Time{}
		}
		c.LastTransitionTime = metav1.NewTime(v.Waits) // a True of another account does not reset the deadline
		return &c, f.History.resetDue()
	case v.Open && !slices.Contains([]string{v1alpha1.ReasonWaiting, v1alpha1.ReasonNewSandbox}, is.Reason):
		return &c, is.LastTransitionTime.Add(reopenDelay) // another account has closed it
	}
	return &c, time.Time{}
}

// messageOf returns the condition to write, and when it is due, if the reason or message of a gate must change. An open
// gate keeps its message, unless all components have become ready since. A closed gate keeps its message until it is
// known what the pod waits for.
func (f *facts) messageOf(v *Verdict, is, want *corev1.PodCondition) (*corev1.PodCondition, time.Time) {
	switch {
	case is.Reason == v.Reason && is.Message == v.Message:
		return nil, time.Time{}
	case v.Open && (v.Reason == v1alpha1.ReasonAllReady || v.Foreign):
		return want, time.Time{}
	case v.Open || v.Waits.IsZero() || v.Unasked:
		return nil, time.Time{}
	}
	return want, is.LastProbeTime.Add(messageInterval)
}

// keyOf is the key that these verdicts require. The latch waits for gates of rules with startHold. If no rule has any of
// the gates anymore, the key is open for every sandbox.
func (f *facts) keyOf(verdicts []Verdict) latchkey.Key {
	open, ruled, abandoned := true, false, ""
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case len(v.Rules) == 0:
			abandoned = v.Reason
			continue
		case !v.Open:
			open = open && HasLatch(f.Pod) && !holdsStart(v)
		}
		ruled = true
	}
	switch {
	case abandoned != "" && !ruled:
		return latchkey.Always(abandoned)
	case f.sandboxGone:
		return latchkey.Key{Sandbox: latchkey.Sandbox{Boot: f.sandbox.Boot, Since: f.sandbox.Since}, Again: f.hadSandbox}
	case !f.sandbox.Ready(): // without a time: the key may be for the next sandbox of the pod
		return latchkey.Key{Sandbox: latchkey.Sandbox{Boot: f.sandbox.Boot}, Again: f.hadSandbox}
	}
	return latchkey.Key{Open: open && !f.addressUnsure, Sandbox: f.sandbox, Again: f.hadSandbox}
}

// holdsStart reports whether a rule holds the start of containers until the gate is open.
func holdsStart(v *Verdict) bool {
	return slices.ContainsFunc(v.Rules, func(r *Rule) bool { return r.StartHold })
}

// keyStillHolds reports whether the pod's key differs from the required one and still need not be written: it is open
// or closed as required, for the sandbox that the pod has, if it has one; or for every sandbox, if there is a latch.
func (f *facts) keyStillHolds(want latchkey.Key) bool {
	switch is := f.key; {
	case !f.keyed || is.Open != want.Open:
		return false
	case f.keyTooLong():
		return !HasLatch(f.Pod) || LatchEnded(f.Pod)
	case is.Always != "":
		return want.Always != "" // otherwise it would open the next sandbox, too
	case want.Always != "":
		return !HasLatch(f.Pod)
	default:
		return !f.sandbox.Ready() || is.Sandbox.Same(want.Sandbox)
	}
}

// keyTooLong reports whether another account has touched the key: a latch does not read a key that is too long.
func (f *facts) keyTooLong() bool { return f.key.Touches > latchkey.MaxTouches }

// keyDue is from when a key may be written without a condition: other accounts must not cause endless writes.
func (d *decider) keyDue(want latchkey.Key) (due time.Time) {
	if d.keyTooLong() && d.key.Open == want.Open {
		due = d.Written.Add(touchPauses[0])
	}
	if slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return v.Foreign }) {
		due = latest(due, d.History.resetDue())
	}
	return due
}
