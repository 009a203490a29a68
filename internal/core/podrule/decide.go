package podrule

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// writeDelay is how long a pod waits before podgate writes that it does. Most pods are ready at once, and are
// written only once then. The time of a sandbox has whole seconds, and for many pods at once the kubelet reports
// it late.
const writeDelay = 5 * time.Second

// addressDelay is how long the address of a second or later sandbox is not used, unless a container has been
// started in it. The kubelet reports that a sandbox is ready, pulls images, starts containers and only then reports
// the address of the sandbox; until then the status has the address of the one before.
const addressDelay = 15 * time.Second

// startLead is by how much a container may have been started before its sandbox is reported: older kubelets report
// both at once.
const startLead = 3 * time.Second

// reopenDelay is how long a gate stays as another account has closed it. Without it, an account that insists would
// cause endless writes.
const reopenDelay = 5 * time.Second

// messageInterval is the least time between two messages of a closed gate. Without it, a component whose answers
// alternate would cause endless writes.
const messageInterval = 10 * time.Second

// Verdict is the decision about one gate of a pod.
type Verdict struct {
	Gate string
	// Rules are those that select the pod and have this gate; none if the gate is abandoned.
	Rules []*Rule
	// Open means that the gate must be open. Reason and Message explain it.
	Open            bool
	Reason, Message string
	// Foreign means that the pod's condition is True without a decision of Readygate.
	Foreign bool
	// Missing are the components that are not ready. Unasked means that one of them has not been probed yet.
	Missing []Missing
	Unasked bool
	// Late are the rules whose deadline has passed while a component is not ready.
	Late []*Rule
	// Waits is since when the pod waits; zero if it does not, or has no sandbox yet.
	Waits time.Time
	// earned means that an open gate was opened because all components were ready.
	earned bool
	// outdated means that the gate is open because of a decision about another sandbox.
	outdated bool
}

// Missing is a component that is not ready, and why.
type Missing struct {
	Rule, Component, Why string
	// known means that the result is known: the component was probed, or its condition was read.
	known bool
}

// Decision is the decision about a pod.
type Decision struct {
	Verdicts []Verdict
	// Probes are the probes to repeat as long as the decision does not change.
	Probes []Probe
	// Patch is what to write; nil if the pod is as required.
	Patch *Patch
	// Until is when time alone may change the decision; zero: never.
	Until time.Time
	// LatchClosed is when the gates that the latch waits for opened, if the container of the latch has not ended; zero
	// otherwise. LatchStuck means that the key was touched latchkey.MaxTouches times without effect.
	LatchClosed time.Time
	LatchStuck  bool
	// again means that the pod had another sandbox before.
	again bool
}

// Answers returns the last result of a probe; false if there is none.
type Answers func(Probe) (Answer, bool)

// Decide decides about all gates of a pod that rules may open. Rules are all rules of the cluster. If answers is nil, no
// component is probed.
//
// Data flows one way: gather sets the facts and which rules select the pod, evaluate sets the verdicts, and patch
// builds what to write. Functions of facts compare and change nothing.
func Decide(rules []*Rule, s *Subject, answers Answers, now time.Time) Decision {
	if Over(s.Pod) {
		return Decision{}
	}
	if s.History == nil {
		without := *s
		without.History = &History{}
		s = &without
	}
	d := &decider{facts: facts{Subject: s, answers: answers, now: now}}
	d.gather(rules)
	for i := range d.Verdicts {
		d.evaluate(&d.Verdicts[i])
	}
	d.Patch = d.patch()
	return d.Decision
}

// facts are what the pod, its node and its annotation contain. Only gather sets them.
type facts struct {
	*Subject
	answers Answers
	now     time.Time
	sandbox latchkey.Sandbox
	// key is the latch key of the pod, if keyed.
	key   latchkey.Key
	keyed bool
	// hadSandbox is whether the pod had another sandbox before this one.
	hadSandbox bool
	// sandboxGone is whether the sandbox of the pod's status does not exist anymore: after a boot of the node the
	// status is that of the time before, until the kubelet has checked the pod.
	sandboxGone bool
	// addressUnsure is whether the status may still have the address of the sandbox before.
	addressUnsure bool
}

type decider struct {
	facts
	Decision
}

// gather sets the facts, and a verdict with its rules for each gate that rules may open.
func (d *decider) gather(rules []*Rule) {
	d.sandbox = d.Sandbox()
	d.key, d.keyed = latchkey.Parse(d.Pod.Annotations[v1alpha1.LatchAnnotation])
	for _, gate := range Ours(d.Pod) {
		verdict, ours := d.verdictOf(gate, rules)
		if !ours {
			continue
		}
		if verdict.Foreign && condition(d.Pod, gate).Reason == v1alpha1.ReasonAgentGone {
			d.wakeAtDeadlines(verdict.Rules, d.sandbox.Since) // then it counts as a decision
		}
		d.Verdicts = append(d.Verdicts, verdict)
	}
	d.hadSandbox = d.keyed && d.key.Again || d.keyOutdated() || d.History.again ||
		slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return v.outdated })
	d.again = d.hadSandbox
	if d.sandboxGone = d.sandboxBeforeBoot() && !d.reached(d.Node.Settles); d.sandboxGone {
		d.wakeAt(d.Node.Settles)
	}
	if addressed := d.sandbox.Since.Add(addressDelay); d.mayHaveOldAddress() && !d.reached(addressed) {
		d.addressUnsure = true
		d.wakeAt(addressed)
	}
}

// mayHaveOldAddress reports whether the kubelet may have set the times of a new sandbox, and not yet its address.
func (f *facts) mayHaveOldAddress() bool {
	return f.hadSandbox && f.sandbox.Ready() && !f.sandboxGone && Started(f.Pod).Add(startLead).Before(f.sandbox.Since)
}

// reached reports whether the time has come.
func (f *facts) reached(t time.Time) bool { return !f.now.Before(t) }

// wakeAt requests another decision at a time, unless it has passed.
func (d *decider) wakeAt(t time.Time) {
	if !d.reached(t) && (d.Until.IsZero() || t.Before(d.Until)) {
		d.Until = t
	}
}

// wakeAtDeadlines requests another decision at each deadline of a pod that has waited since then.
func (d *decider) wakeAtDeadlines(rules []*Rule, since time.Time) {
	for _, rule := range rules {
		if rule.Deadline > 0 {
			d.wakeAt(since.Add(rule.Deadline))
		}
	}
}

// keyOutdated reports whether the key is of another sandbox than the one that the pod has, or will have next.
func (f *facts) keyOutdated() bool {
	return f.keyed && f.key.Always == "" && !f.key.Sandbox.Same(f.sandbox) && !f.key.Sandbox.Since.IsZero()
}

// hasSandbox reports whether the pod has a sandbox, so that the results of components count.
func (f *facts) hasSandbox() bool { return f.sandbox.Ready() && !f.sandboxGone && !f.addressUnsure }

// sandboxBeforeBoot reports whether the sandbox seems to be from before the boot of the node. The boot that a key names
// is more reliable than clocks, which may be set; and a key without an address means that the sandbox was gone.
func (f *facts) sandboxBeforeBoot() bool {
	key := f.key.Sandbox
	if f.keyed && !key.Since.IsZero() && key.Since.Equal(f.sandbox.Since) {
		if key.IP == "" {
			return true
		}
		if key.Boot != "" && f.sandbox.Boot != "" {
			return key.Rebooted(f.sandbox)
		}
	}
	return f.sandbox.Since.Before(f.Node.Booted.Truncate(time.Second))
}

// verdictOf returns the verdict of a gate as far as it depends on rules and on what is written. It returns false if no
// rule selects the pod and none ever did.
func (f *facts) verdictOf(gate string, rules []*Rule) (Verdict, bool) {
	verdict := Verdict{Gate: gate}
	reason := v1alpha1.ReasonRuleDeleted
	for _, rule := range rules {
		switch {
		case rule.Gate != gate:
		case rule.Active() && rule.Selects(f.Pod, f.Namespace):
			verdict.Rules = append(verdict.Rules, rule)
		case rule.Active() && !slices.ContainsFunc(rules, func(other *Rule) bool { return other.deletes(gate, f.Subject) }):
			reason = v1alpha1.ReasonNotSelected
		}
	}
	if len(verdict.Rules) == 0 {
		verdict.Open, verdict.Reason, verdict.Message = true, reason, abandonedWords(reason)
		return verdict, slices.Contains(Asked(f.Pod), gate)
	}
	verdict.Foreign = f.isForeign(&verdict)
	verdict.outdated = f.isOpen(gate) && !verdict.Foreign && f.openForOtherSandbox(gate)
	return verdict, true
}

// deletes reports whether the rule is being deleted, and selected the pod for its gate.
func (r *Rule) deletes(gate string, s *Subject) bool {
	return r.Deleting && r.Gate == gate && r.Selects(s.Pod, s.Namespace)
}

// evaluate completes a verdict: it collects the results of the components and compares the deadlines.
func (d *decider) evaluate(v *Verdict) {
	open := d.isOpen(v.Gate) && !v.Foreign
	switch {
	case len(v.Rules) == 0: // open, because no rule has the gate anymore
		return
	case v.outdated:
		d.closeOutdated(v)
		return
	case !d.hasSandbox():
		v.Reason, v.Message = v1alpha1.ReasonWaiting, "the pod has no network yet: the kubelet has not reported that its sandbox is ready"
		return
	case open && !slices.ContainsFunc(v.Rules, func(r *Rule) bool { return r.CloseOnNotReady }):
		d.keep(v)
		return
	}
	earned := open && d.isEarned(v.Gate)
	results := d.collect(v.Rules, earned, d.Probes)
	d.Probes, v.Missing, v.Unasked = results.probes, results.missing, results.unasked
	switch {
	case open && len(v.Missing) > 0 && (!earned || !results.refused):
		d.keep(v) // a gate that was opened although a component was not ready does not close because of that
	case earned && len(v.Missing) == 0:
		d.keep(v)
	case len(v.Missing) == 0:
		v.Open, v.Reason, v.Message, v.earned = true, v1alpha1.ReasonAllReady, allReadyWords(v.Rules), true
	default:
		d.wait(v)
	}
}

// closeOutdated closes a gate that was opened for another sandbox.
func (f *facts) closeOutdated(v *Verdict) {
	v.Reason, v.Message = v1alpha1.ReasonNewSandbox, "the pod has a new sandbox, or its node has rebooted: earlier results of its components do not count"
	if f.answers == nil && f.sandbox.Ready() && HasLatch(f.Pod) && f.key.Always == "" { // its latch still waits
		v.Late, _ = f.lateRules(v.Rules, f.sandbox.Since)
	}
}

// keep leaves an open gate as it is.
func (f *facts) keep(v *Verdict) {
	is := condition(f.Pod, v.Gate)
	v.Open, v.Reason, v.Message, v.Missing, v.earned = true, is.Reason, is.Message, nil, f.isEarned(v.Gate)
}

// results are the results of the components of a gate.
type results struct {
	missing []Missing
	// probes are those of the previous gates, and of this one.
	probes []Probe
	// unasked means that a component has not been probed yet. refused means that a component failed often enough to
	// close an open gate; a component without a result, after a restart of the agent, has not failed.
	unasked, refused bool
}

// collect returns the results of the components of all rules. For a gate that they have opened, it considers only rules
// that may close it.
func (f *facts) collect(rules []*Rule, earned bool, probes []Probe) results {
	r := results{probes: probes}
	for _, rule := range rules {
		if earned && !rule.CloseOnNotReady {
			continue
		}
		for i := range rule.Components {
			c := &rule.Components[i]
			probe, asks := f.probe(c)
			if asks {
				r.probes = append(r.probes, probe)
			}
			answer, known := f.answer(c, probe, asks)
			if known && answer.Yes {
				continue
			}
			r.refused = r.refused || known && answer.Noes >= Refusals
			r.unasked = r.unasked || !known
			r.missing = append(r.missing, Missing{Rule: rule.Name, Component: c.Name, Why: answer.Why, known: known})
		}
	}
	return r
}

// wait sets the verdict of a gate with a component that is not ready: closed, or opened by deadlines.
func (d *decider) wait(v *Verdict) {
	v.Reason, v.Message, v.Waits = v1alpha1.ReasonWaiting, waitingWords(v.Missing), d.waitsSince(v)
	missing := slices.DeleteFunc(slices.Clone(v.Rules), func(r *Rule) bool {
		return !slices.ContainsFunc(v.Missing, func(m Missing) bool { return m.Rule == r.Name })
	})
	d.wakeAtDeadlines(missing, v.Waits)
	late, opens := d.lateRules(missing, v.Waits)
	v.Late = late
	if opens && (d.answers == nil || !v.Unasked) { // a component that was not probed is not late
		v.Open, v.Reason, v.Message = true, v1alpha1.ReasonDeadline, lateWords(v)
	}
}

// lateRules returns the rules whose deadline has passed for a pod that has waited since then, and whether all rules are
// late and open the gate (onDeadline: Open).
func (f *facts) lateRules(rules []*Rule, since time.Time) (late []*Rule, opens bool) {
	opens = true
	for _, rule := range rules {
		if rule.Deadline > 0 && f.reached(since.Add(rule.Deadline)) {
			late = append(late, rule)
			opens = opens && rule.OpenLate
			continue
		}
		opens = false
	}
	return late, opens
}

// waitsSince is since when a pod waits for its gate: since its sandbox is known, or since the gate was closed again.
func (f *facts) waitsSince(v *Verdict) time.Time {
	is := condition(f.Pod, v.Gate)
	switch {
	case v.Foreign && f.keyed && f.key.Sandbox.Same(f.sandbox): // the sandbox was known before the agent started
		return f.sandbox.Since
	case is == nil, v.Foreign:
	case is.Status == corev1.ConditionTrue:
		return f.now
	case !is.LastTransitionTime.Time.Before(f.sandbox.Since):
		return is.LastTransitionTime.Time
	}
	return latest(f.sandbox.Since, f.Seen)
}

func (f *facts) isOpen(gate string) bool { return IsTrue(f.Pod, gate) }

// openForOtherSandbox reports whether an open gate was opened for another sandbox than the pod's.
func (f *facts) openForOtherSandbox(gate string) bool {
	if opened := f.History.opened[gate]; opened != nil {
		return !opened.Same(f.sandbox)
	}
	if f.keyed && f.key.Always == "" {
		return !f.key.Sandbox.Same(f.sandbox)
	}
	// The annotation does not name the sandbox. Times have whole seconds.
	return !f.sandbox.Ready() || condition(f.Pod, gate).LastTransitionTime.Time.Before(f.sandbox.Since.Truncate(time.Second))
}
