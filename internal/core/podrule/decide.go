package podrule

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// patience is how long a pod waits before it is written that it does: most pods are ready at once,
// and are written only once then. The time of a sandbox is told in whole seconds, and of many pods at
// once the kubelet tells late.
const patience = 5 * time.Second

// addressRest is how long a pod that had another sandbox before is not looked at in its new one, unless
// a container has been started in it: the kubelet tells of a sandbox first, pulls images, starts
// containers and tells of its address then, with the address of the one before in between.
const addressRest = 15 * time.Second

// startLead is by how much a container may have been started before its sandbox is said to be there:
// older kubelets tell of both at once.
const startLead = 3 * time.Second

// contestRest is how long a gate stays as somebody else has closed it. Who insists would else have the
// pod written all the time.
const contestRest = 5 * time.Second

// wordsRest is how long the words about a closed gate stay as they are at the least: a component whose
// answers alternate would have the pod written all the time.
const wordsRest = 10 * time.Second

// Verdict is what is decided of one gate of a pod.
type Verdict struct {
	Gate string
	// Rules are those that select the pod and have this gate; none if the gate is abandoned.
	Rules []*Rule
	// Open says that the gate is to be open, and Reason and Message why, or why not.
	Open            bool
	Reason, Message string
	// Foreign says that the pod's condition is True, and that Readygate did not decide so.
	Foreign bool
	// Missing are the components that have not said yes, and Unasked says that one of them has not
	// been asked yet.
	Missing []Missing
	Unasked bool
	// Late are the rules whose deadline is over while a component has not said yes.
	Late []*Rule
	// Waits is since when the pod waits; zero if it does not, or has no sandbox yet.
	Waits time.Time
	// earned reports that an open gate was opened because all components were ready.
	earned bool
}

// Missing is a component that has not said yes, and what it says.
type Missing struct {
	Rule, Component, Why string
	// known says that it was asked.
	known bool
}

// Decision is what is decided of a pod.
type Decision struct {
	Verdicts []Verdict
	// Probes are the questions to ask as long as the decision stands.
	Probes []Probe
	// Patch is what to write; nil if the pod is as it should be.
	Patch *Patch
	// Until is when time alone may change the decision; zero: never.
	Until time.Time
	// LatchClosed is when the gates opened that the latch waits for, if its container has not ended;
	// zero otherwise. LatchStuck reports that all touches of the key are used up.
	LatchClosed time.Time
	LatchStuck  bool
	// again says that the pod had another sandbox before.
	again bool
}

// Answers tells what is known of the answer to a question; false if nothing is.
type Answers func(Probe) (Answer, bool)

// Decide decides of all gates of a pod that are ours. Rules are all that there are. Without answers
// no component is heard.
func Decide(rules []*Rule, s *Subject, answers Answers, now time.Time) Decision {
	if Over(s.Pod) {
		return Decision{}
	}
	if s.History == nil {
		without := *s
		without.History = &History{}
		s = &without
	}
	d := &decider{Subject: s, sandbox: sandboxOf(s.Pod, &s.Node), answers: answers, now: now}
	d.key, d.keyed = latchkey.Parse(s.Pod.Annotations[v1alpha1.LatchAnnotation])
	d.again = d.keyed && d.key.Again || d.anew() || s.History.again
	for _, gate := range Ours(s.Pod) {
		if verdict, ours := d.judge(gate, rules); ours {
			d.Verdicts = append(d.Verdicts, verdict)
		}
	}
	d.Patch = d.patch()
	return d.Decision
}

type decider struct {
	*Subject
	Decision
	sandbox latchkey.Sandbox
	answers Answers
	now     time.Time
	// key is what is written beside the gates, if keyed.
	key   latchkey.Key
	keyed bool
}

// anew says that what is written is of another sandbox than the pod has now, or has next.
func (d *decider) anew() bool {
	return d.keyed && d.key.Always == "" && !d.key.Sandbox.Same(d.sandbox) && !d.key.Sandbox.Since.IsZero()
}

// there says that the pod has the sandbox that it is to be judged in.
func (d *decider) there() bool { return d.sandbox.Ready() && !d.over() && !d.early() }

// over says that the sandbox that the pod's status tells of is gone: after a boot it tells of the one
// before until the kubelet has looked.
func (d *decider) over() bool { return d.before() && !d.after(d.Node.Settles) }

// before says that the sandbox seems to be from before the boot of the node. The boot that a key names
// is surer than clocks, which may be set; and a key without an address says that a sandbox was over.
func (d *decider) before() bool {
	key := d.key.Sandbox
	if d.keyed && !key.Since.IsZero() && key.Since.Equal(d.sandbox.Since) {
		if key.IP == "" {
			return true
		}
		if key.Boot != "" && d.sandbox.Boot != "" {
			return key.Rebooted(d.sandbox)
		}
	}
	return d.sandbox.Since.Before(d.Node.Booted.Truncate(time.Second))
}

// early says that the status may still tell the address of the sandbox before.
func (d *decider) early() bool {
	return d.again && Started(d.Pod).Add(startLead).Before(d.sandbox.Since) && !d.after(d.sandbox.Since.Add(addressRest))
}

// judge decides of a gate. It is not ours if no rule selects the pod and none ever did.
func (d *decider) judge(gate string, rules []*Rule) (Verdict, bool) {
	verdict := Verdict{Gate: gate}
	reason := v1alpha1.ReasonRuleDeleted
	for _, rule := range rules {
		switch {
		case rule.Gate != gate:
		case rule.Active() && rule.Selects(d.Pod, d.Namespace):
			verdict.Rules = append(verdict.Rules, rule)
		case rule.Active() && !slices.ContainsFunc(rules, func(other *Rule) bool { return other.deletes(gate, d.Subject) }):
			reason = v1alpha1.ReasonNotSelected
		}
	}
	if len(verdict.Rules) == 0 {
		if !slices.Contains(Asked(d.Pod), gate) {
			return Verdict{}, false
		}
		verdict.Open, verdict.Reason, verdict.Message = true, reason, abandonedWords(reason)
		return verdict, true
	}
	d.evaluate(&verdict)
	return verdict, true
}

// deletes says whether the rule is being deleted, and selected the pod for its gate.
func (r *Rule) deletes(gate string, s *Subject) bool {
	return r.Deleting && r.Gate == gate && r.Selects(s.Pod, s.Namespace)
}

// evaluate asks all components.
func (d *decider) evaluate(v *Verdict) {
	v.Foreign = d.foreign(v)
	open := d.isOpen(v.Gate) && !v.Foreign
	switch {
	case open && d.stale(v.Gate):
		d.renew(v)
		return
	case !d.there():
		v.Reason, v.Message = v1alpha1.ReasonWaiting, "the pod has no network yet: the kubelet has not said that its sandbox is there"
		return
	case open && !slices.ContainsFunc(v.Rules, func(r *Rule) bool { return r.CloseOnNotReady }):
		d.keep(v)
		return
	}
	earned := open && d.earned(v.Gate)
	refused := d.ask(v, earned)
	switch {
	case open && len(v.Missing) > 0 && (!earned || !refused):
		d.keep(v) // what was opened although somebody had not said yes is not closed because of that
	case earned && len(v.Missing) == 0:
		d.keep(v)
	case len(v.Missing) == 0:
		v.Open, v.Reason, v.Message, v.earned = true, v1alpha1.ReasonAllReady, allReadyWords(v.Rules), true
	default:
		d.wait(v)
	}
}

// renew closes a gate that was opened for another sandbox.
func (d *decider) renew(v *Verdict) {
	d.again = true
	v.Reason, v.Message = v1alpha1.ReasonNewSandbox, "the pod has a new sandbox, or its node has booted: what its components said before does not count"
	if d.answers == nil && d.sandbox.Ready() && HasLatch(d.Pod) && d.key.Always == "" { // that waits on
		v.Late, _ = d.late(v.Rules, d.sandbox.Since)
	}
}

// keep leaves an open gate as it is.
func (d *decider) keep(v *Verdict) {
	is := condition(d.Pod, v.Gate)
	v.Open, v.Reason, v.Message, v.Missing, v.earned = true, is.Reason, is.Message, nil, d.earned(v.Gate)
}

// ask collects what components say. Of a gate that they have opened only a rule that may close it is
// asked, and only who has said no often enough has refused: who has not answered yet, after a restart,
// has not.
func (d *decider) ask(v *Verdict, earned bool) (refused bool) {
	for _, rule := range v.Rules {
		if earned && !rule.CloseOnNotReady {
			continue
		}
		for i := range rule.Components {
			answer, known := d.answer(&rule.Components[i])
			if known && answer.Yes {
				continue
			}
			refused = refused || known && answer.Noes >= Refusals
			v.Unasked = v.Unasked || !known
			v.Missing = append(v.Missing, Missing{Rule: rule.Name, Component: rule.Components[i].Name, Why: answer.Why, known: known})
		}
	}
	return refused
}

// wait decides of a gate for which a component is missing.
func (d *decider) wait(v *Verdict) {
	v.Reason, v.Message, v.Waits = v1alpha1.ReasonWaiting, waitingWords(v.Missing), d.waits(v)
	missing := slices.DeleteFunc(slices.Clone(v.Rules), func(r *Rule) bool {
		return !slices.ContainsFunc(v.Missing, func(m Missing) bool { return m.Rule == r.Name })
	})
	late, opens := d.late(missing, v.Waits)
	v.Late = late
	if opens && (d.answers == nil || !v.Unasked) { // who has not been asked is not late
		v.Open, v.Reason, v.Message = true, v1alpha1.ReasonDeadline, lateWords(v)
	}
}

// late are the rules whose deadline is over for a pod that waits, and whether all of them say that it
// is opened then.
func (d *decider) late(rules []*Rule, since time.Time) (late []*Rule, opens bool) {
	opens = true
	for _, rule := range rules {
		if rule.Deadline > 0 && d.after(since.Add(rule.Deadline)) {
			late = append(late, rule)
			opens = opens && rule.OpenLate
			continue
		}
		opens = false
	}
	return late, opens
}

// waits is since when a gate without which the pod could be ready has been closed: since its sandbox is
// known of, or since it was closed again.
func (d *decider) waits(v *Verdict) time.Time {
	is := condition(d.Pod, v.Gate)
	switch {
	case v.Foreign && d.keyed && d.key.Sandbox.Same(d.sandbox): // the sandbox was known before the agent started
		return d.sandbox.Since
	case is == nil, v.Foreign:
	case is.Status == corev1.ConditionTrue:
		return d.now
	case !is.LastTransitionTime.Time.Before(d.sandbox.Since):
		return is.LastTransitionTime.Time
	}
	return latest(d.sandbox.Since, d.Seen)
}

func (d *decider) sooner(t time.Time) {
	if d.Until.IsZero() || t.Before(d.Until) {
		d.Until = t
	}
}

func (d *decider) isOpen(gate string) bool { return IsTrue(d.Pod, gate) }

// stale says that an open gate was opened for another sandbox.
func (d *decider) stale(gate string) bool {
	if opened := d.History.opened[gate]; opened != nil {
		return !opened.Same(d.sandbox)
	}
	if d.keyed && d.key.Always == "" {
		return !d.key.Sandbox.Same(d.sandbox)
	}
	// Who opened it did not say for which. Times have whole seconds.
	return !d.sandbox.Ready() || condition(d.Pod, gate).LastTransitionTime.Time.Before(d.sandbox.Since.Truncate(time.Second))
}

// patch is what to write; nil if nothing is.
func (d *decider) patch() *Patch {
	var changed []corev1.PodCondition
	for i := range d.Verdicts {
		if is := d.write(&d.Verdicts[i]); is != nil {
			changed = append(changed, *is)
		}
	}
	key := d.keyFor()
	touched := d.touch(&key)
	is, has := d.Pod.Annotations[v1alpha1.LatchAnnotation]
	switch {
	case len(d.Verdicts) == 0:
		return nil
	case len(changed) == 0 && key.String() == is:
		return nil
	case len(changed) == 0 && !has && !slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return v.Open }):
		return nil // nothing is open, and nothing is to be closed
	case len(changed) == 0 && !touched && (d.holdsStill(is, key) || d.setBackWaits()):
		return nil
	}
	return &Patch{Conditions: changed, Key: key.String(), Touch: touched}
}

// holdsStill says that a key needs not be written again: it says whether the latch is open, for the
// sandbox that the pod has, if it has one; or for all of them, if there is a latch to be opened for good.
func (d *decider) holdsStill(value string, want latchkey.Key) bool {
	is, ok := latchkey.Parse(value)
	switch {
	case !ok || is.Open != want.Open:
		return false
	case is.Touches > latchkey.MaxTouches: // by another account: a latch does not read a key that is too long
		return !HasLatch(d.Pod) || LatchEnded(d.Pod) || !d.after(d.Written.Add(touchPauses[0]))
	case is.Always != "":
		return want.Always != "" // else it would open the next sandbox, too
	case want.Always != "":
		return !HasLatch(d.Pod)
	}
	return !d.sandbox.Ready() || is.Sandbox.Same(want.Sandbox)
}

// write is the condition to write for a verdict; nil if it is written already, or not yet worth it.
func (d *decider) write(v *Verdict) *corev1.PodCondition {
	want := openCondition(v, d.now)
	if !v.Open {
		want.Status, want.LastProbeTime = corev1.ConditionFalse, metav1.NewTime(d.now)
	}
	is := condition(d.Pod, v.Gate)
	if is == nil || is.Status != want.Status {
		if is == nil && !v.Open {
			if !d.worthIt(v) {
				return nil
			}
			want.LastTransitionTime = metav1.NewTime(v.Waits) // not when it was written
		}
		if d.contested(v, is) || v.Foreign && !d.setsBack(v) {
			return nil
		}
		if v.Foreign { // a True of another account does not reset the deadline
			want.LastTransitionTime = metav1.NewTime(v.Waits)
		}
		return &want
	}
	if !d.saysMore(v, is) {
		return nil
	}
	want.LastTransitionTime = is.LastTransitionTime
	return &want
}

// contested says that somebody else has closed a gate that is to be open, a moment ago.
func (d *decider) contested(v *Verdict, is *corev1.PodCondition) bool {
	if is == nil || !v.Open || slices.Contains([]string{v1alpha1.ReasonWaiting, v1alpha1.ReasonNewSandbox}, is.Reason) {
		return false
	}
	return !d.after(is.LastTransitionTime.Add(contestRest))
}

// worthIt says whether it is to be written that a gate is closed that nobody has called open. The kubelet
// says what a pod without a sandbox waits for, and most pods wait for a moment only.
func (d *decider) worthIt(v *Verdict) bool {
	if v.Waits.IsZero() || v.Unasked {
		return false
	}
	return d.after(v.Waits.Add(patience))
}

// saysMore says whether the reason or the words of a gate are to be written anew. Why it was opened
// stays, unless all components have said yes since; and so does why it was closed, until it is known
// what it waits for.
func (d *decider) saysMore(v *Verdict, is *corev1.PodCondition) bool {
	switch {
	case is.Reason == v.Reason && is.Message == v.Message:
		return false
	case v.Open:
		return v.Reason == v1alpha1.ReasonAllReady || v.Foreign
	case v.Waits.IsZero() || v.Unasked:
		return false
	}
	return d.after(is.LastProbeTime.Add(wordsRest))
}

// after says whether it is that late; if not, it is looked at again then.
func (d *decider) after(due time.Time) bool {
	if d.now.Before(due) {
		d.sooner(due)
		return false
	}
	return true
}

// keyFor is the key for the pod as it is decided. The latch waits for gates of rules that hold the
// start. If all gates are abandoned, it is open for good.
func (d *decider) keyFor() latchkey.Key {
	open, abandoned := true, ""
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if len(v.Rules) == 0 {
			abandoned = v.Reason
			continue
		}
		if v.Open {
			continue
		}
		open = open && HasLatch(d.Pod) && !holdsStart(v)
	}
	if abandoned != "" && !slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return len(v.Rules) > 0 }) {
		return latchkey.Always(abandoned)
	}
	switch {
	case d.over():
		return latchkey.Key{Sandbox: latchkey.Sandbox{Boot: d.sandbox.Boot, Since: d.sandbox.Since}, Again: d.again}
	case !d.sandbox.Ready(): // without a time: it may be the sandbox that the pod is going to have
		return latchkey.Key{Sandbox: latchkey.Sandbox{Boot: d.sandbox.Boot}, Again: d.again}
	}
	return latchkey.Key{Open: open && !d.early(), Sandbox: d.sandbox, Again: d.again}
}

// holdsStart says whether a rule holds the start of containers until the gate is open.
func holdsStart(v *Verdict) bool {
	return slices.ContainsFunc(v.Rules, func(r *Rule) bool { return r.StartHold })
}
