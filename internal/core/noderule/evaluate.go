package noderule

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Cause is why a verdict differs from what the requirements alone give.
type Cause string

const (
	// CauseMinReady holds a node whose requirements have not been met for minReadySeconds.
	CauseMinReady Cause = "MinReady"
	// CauseNotReady holds a node that is not Ready: it may come back from a reboot.
	CauseNotReady Cause = "NotReady"
	// CauseDependency leaves a node as it is until a rule of dependsOn releases it.
	CauseDependency Cause = "Dependency"
	// CauseLimit leaves a node released because maxUnavailable is reached.
	CauseLimit Cause = "Limit"
	// CauseDeadline releases a node that was held longer than progressDeadlineSeconds.
	CauseDeadline Cause = "Deadline"
)

// maxSkew is how far the clock of a node may be ahead. A heartbeat further in the future is ignored: it would count as
// recent long after its reporter has stopped.
const maxSkew = time.Minute

// outcome is a verdict without its explanation.
type outcome struct {
	state     State
	completed bool
	cause     Cause
	// stuck means that the node has been held longer than the rule's deadline.
	stuck bool
	// until is when time alone can change the outcome; zero: never.
	until time.Time
	// ready is when the requirements will have been met for minReadySeconds, with CauseMinReady.
	ready time.Time
}

// evaluate returns the outcome of the rule. If a rule of dependsOn blocks, the node stays as it is. It does not allocate
// for a rule without optional fields.
func (f *facts) evaluate(now time.Time) outcome {
	alone := f.evaluateAlone(now)
	if alone.state == NotSelected || alone.completed || f.blockedBy(now) == nil {
		return alone
	}
	return outcome{state: f.whileWaiting(alone.state), cause: CauseDependency}
}

// blockedBy returns the first rule that must release the node before this one is evaluated; nil if there is none. A rule
// that would leave the node released if maxUnavailable is reached blocks once its taint is there.
func (f *facts) blockedBy(now time.Time) *Rule {
	for _, other := range f.rule.after {
		if !other.Active() {
			continue
		}
		var g facts
		g.decode(other, f.node)
		if g.evaluateAlone(now).state == Held && !g.takes() {
			return other
		}
	}
	return nil
}

// whileWaiting is the state of a node while the rule waits for another one: unchanged. A rule with bootstrapScope
// Boot that would hold the node holds it: only conditions that are reported from now on count.
func (f *facts) whileWaiting(alone State) State {
	if f.owned() || f.rule.Boot && alone == Held {
		return Held
	}
	return Released
}

// evaluateAlone returns the outcome without dependsOn.
func (f *facts) evaluateAlone(now time.Time) outcome {
	rule := f.rule
	switch {
	case !rule.hasVerdicts() || !f.selected:
		return outcome{state: NotSelected}
	case rule.Bootstrap && f.completed():
		if rule.Boot && !f.node.ready() {
			return outcome{state: Held, cause: CauseNotReady}
		}
		return outcome{state: Released, completed: true}
	case rule.timed:
		return f.evaluateTimed(now)
	case meets(f.node, rule):
		return outcome{state: Released}
	default:
		return outcome{state: Held}
	}
}

// evaluateTimed returns the outcome of a rule with fields that depend on time, heartbeats or boots.
func (f *facts) evaluateTimed(now time.Time) outcome {
	rule := f.rule
	met := f.requirements(now)
	o := outcome{state: Held, until: met.until}
	switch ready := met.since.Add(rule.MinReady); {
	case met.all && rule.Boot && !f.node.ready():
		o.cause = CauseNotReady
	case met.all && rule.MinReady > 0 && now.Before(ready):
		o.cause, o.until, o.ready = CauseMinReady, earlier(o.until, ready), ready
	case met.all:
		return outcome{state: Released, until: met.until}
	case rule.recordsExpiry() && f.memory().Expired != "":
		return outcome{state: Released, cause: CauseDeadline}
	}
	return f.withDeadline(o, now)
}

// withDeadline applies the rule's deadline to the outcome of a held node.
func (f *facts) withDeadline(o outcome, now time.Time) outcome {
	rule, hold := f.rule, f.hold()
	since := hold.since(f.node)
	if rule.Deadline == 0 || since.IsZero() || hold.Waits || !f.holding() { // otherwise the deadline restarts
		return o
	}
	deadline := since.Add(rule.Deadline)
	switch {
	case now.Before(deadline):
		o.until = earlier(o.until, deadline)
	case rule.ReleaseStuck && (!rule.Boot || f.node.ready()): // otherwise it would be held again at once
		released := outcome{state: Released, cause: CauseDeadline, stuck: true}
		if o.cause == CauseMinReady { // the requirements are met
			released.cause = ""
		}
		return released
	default:
		o.stuck = true
	}
	return o
}

// met is how the requirements of a rule compare with a node at a time.
type met struct {
	// all means that enough of them are met: all, or with anyOf one.
	all bool
	// since is when that began.
	since time.Time
	// until is when the first heartbeat becomes too old; zero: never.
	until time.Time
}

// requirements compares all requirements with the node. With anyOf the requirement that has been met for the longest
// time counts.
func (f *facts) requirements(now time.Time) met {
	rule := f.rule
	m := met{all: !rule.AnyOf || len(rule.Requirements) == 0}
	for i := range rule.Requirements {
		requirement := &rule.Requirements[i]
		c := f.condition(requirement, now)
		m.until = earlier(m.until, c.until)
		if c.status != requirement.RequiredStatus {
			m.all = m.all && rule.AnyOf
			continue
		}
		switch {
		case !rule.AnyOf:
			m.since = later(m.since, c.since)
		case !m.all:
			m.all, m.since = true, c.since
		case c.since.Before(m.since):
			m.since = c.since
		}
	}
	m.since = f.metSince(m.since, now)
	return m
}

// metSince is since when the requirements count as met. For a node that is not held it is the transition time of the
// conditions. For a held node it is the time at which the manager first observed it: transition times come from
// other components, and the age of a heartbeat at that time is not known.
func (f *facts) metSince(transition, now time.Time) time.Time {
	held := f.owned() || f.tainted()
	if !held && (!f.rule.Bootstrap || f.node.Created.Before(f.rule.Created)) {
		return time.Time{} // the node is in use and was not held
	}
	if transition.After(now) { // a clock that is ahead
		transition = now
	}
	if !held {
		return transition
	}
	if recorded := timeIn(f.hold().Met); !recorded.IsZero() {
		return later(transition, recorded)
	}
	return now
}

// effective is what counts of a condition: its status, and since and until when, as far as that is known.
type effective struct {
	status corev1.ConditionStatus
	reason UnknownReason
	since  time.Time
	until  time.Time
}

// UnknownReason is why a condition of a node counts as Unknown, whatever its status.
type UnknownReason string

const (
	// UnknownHeartbeatTooOld means that its last heartbeat is older than maxAge.
	UnknownHeartbeatTooOld UnknownReason = "Silent"
	// UnknownNoHeartbeat means that it has no heartbeat, although the rule has a maxAge.
	UnknownNoHeartbeat UnknownReason = "NoHeartbeat"
	// UnknownHeartbeatInFuture means that its heartbeat is in the future.
	UnknownHeartbeatInFuture UnknownReason = "Ahead"
	// UnknownEarlierBoot means that it was not reported since the node booted.
	UnknownEarlierBoot UnknownReason = "EarlierBoot"
)

// condition is what counts of the node's condition for a requirement.
func (f *facts) condition(requirement *v1alpha1.ConditionRequirement, now time.Time) effective {
	condition := f.node.condition(requirement.Type)
	if condition == nil {
		return effective{status: currentStatus(requirement, f.node)}
	}
	c := effective{status: condition.Status, since: condition.LastTransitionTime.Time}
	if c.reason, c.until = unknownReason(requirement, condition, f.hold(), now); c.reason != "" || c.status == "" {
		c.status = corev1.ConditionUnknown
	}
	switch c.reason {
	case UnknownHeartbeatTooOld:
		c.since = condition.LastHeartbeatTime.Add(requirement.MaxAge.Duration)
	case UnknownEarlierBoot:
		c.since = later(c.since, f.hold().since(f.node))
	}
	return c
}

// unknownReason is why a condition does not count, and otherwise until when it does; zero: forever.
func unknownReason(requirement *v1alpha1.ConditionRequirement, condition *corev1.NodeCondition, hold *record, now time.Time) (UnknownReason, time.Time) {
	beat := condition.LastHeartbeatTime.Time
	if old, known := hold.Beats[requirement.Type]; known && !hold.Armed && old == beatOf(condition) {
		return UnknownEarlierBoot, time.Time{}
	}
	if requirement.MaxAge == nil {
		return "", time.Time{}
	}
	deadline := beat.Add(requirement.MaxAge.Duration)
	switch {
	case beat.IsZero():
		return UnknownNoHeartbeat, time.Time{}
	case beat.After(now.Add(maxSkew)), len(hold.Ahead) > 0 && hold.Ahead[requirement.Type] == beatOf(condition):
		return UnknownHeartbeatInFuture, time.Time{} // also later: the time at which it was written is not known
	case !now.Before(deadline):
		return UnknownHeartbeatTooOld, time.Time{}
	default:
		return "", deadline
	}
}

// currentStatus is the status of the condition of a requirement, before maxAge.
func currentStatus(requirement *v1alpha1.ConditionRequirement, node *Node) corev1.ConditionStatus {
	if condition := node.condition(requirement.Type); condition != nil {
		return cmp.Or(condition.Status, corev1.ConditionUnknown)
	}
	return cmp.Or(requirement.DefaultStatus, corev1.ConditionUnknown)
}

// meets reports whether the node meets the requirements of a rule without optional fields. With allOf the first unmet
// requirement decides, with anyOf the first one that is met.
func meets(node *Node, rule *Rule) bool {
	for i := range rule.Requirements {
		if met := currentStatus(&rule.Requirements[i], node) == rule.Requirements[i].RequiredStatus; met == rule.AnyOf {
			return met
		}
	}
	return !rule.AnyOf || len(rule.Requirements) == 0
}

// earlier is the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
