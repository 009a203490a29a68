package noderule

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Cause says why a rule's answer is not the one that its requirements alone ask for.
type Cause string

const (
	// CauseMinReady holds a node whose requirements have not been met for long enough.
	CauseMinReady Cause = "MinReady"
	// CauseNotReady holds a node that is not Ready: it may come back from a reboot.
	CauseNotReady Cause = "NotReady"
	// CauseDependency leaves a node as it is until a rule that this one depends on releases it.
	CauseDependency Cause = "Dependency"
	// CauseLimit leaves a node released because as many nodes are away as may be.
	CauseLimit Cause = "Limit"
	// CauseDeadline releases a node that was held for too long.
	CauseDeadline Cause = "Deadline"
)

// maxSkew is how far a node's clock may be ahead of ours. A heartbeat from later than that says
// nothing: it would look fresh long after its reporter has died.
const maxSkew = time.Minute

// ruling is a verdict without its words: all that deciding needs.
type ruling struct {
	state     State
	completed bool
	cause     Cause
	// stuck says that the node has been held longer than the rule's deadline.
	stuck bool
	// until is when time alone can change the ruling; zero: never.
	until time.Time
	// ready is when the requirements will have been met for long enough, with CauseMinReady.
	ready time.Time
}

// blames says whether it is the requirements that hold the node, or would.
func (r *ruling) blames() bool {
	return r.state == Held && r.cause == "" || r.cause == CauseLimit || r.cause == CauseDeadline
}

// judge decides. It does not allocate for a rule without optional fields.
func judge(rule *Rule, node *Node, now time.Time) ruling {
	r := judgeAlone(rule, node, now)
	if r.state == NotSelected || r.completed || dependency(rule, node, now) == nil {
		return r
	}
	return ruling{state: meanwhile(rule, node, r.state), cause: CauseDependency}
}

// meanwhile is the state of a node while the rule waits for another one: as it is. A rule that looks at
// boots and would hold the node does so: what is reported from now on counts.
func meanwhile(rule *Rule, node *Node, otherwise State) State {
	if owns(rule, node) || rule.Boot && otherwise == Held {
		return Held
	}
	return Released
}

// dependency is the first rule that must release the node before this one looks at it, nil if
// there is none. A rule that may have to leave the node released because of its limit holds it
// when its taint is there.
func dependency(rule *Rule, node *Node, now time.Time) *Rule {
	for _, other := range rule.after {
		if other.Active() && judgeAlone(other, node, now).state == Held && !takes(other, node) {
			return other
		}
	}
	return nil
}

// judgeAlone decides as if the rule depended on no other.
func judgeAlone(rule *Rule, node *Node, now time.Time) ruling {
	switch {
	case !rule.speaks() || !rule.Selects(node):
		return ruling{state: NotSelected}
	case rule.Bootstrap && hasCompleted(rule, node):
		if rule.Boot && !node.ready() {
			return ruling{state: Held, cause: CauseNotReady}
		}
		return ruling{state: Released, completed: true}
	case rule.timed:
		return judgeTimed(rule, node, now)
	case meets(node, rule):
		return ruling{state: Released}
	default:
		return ruling{state: Held}
	}
}

// judgeTimed decides for a rule with fields that look at clocks, heartbeats or what was before.
func judgeTimed(rule *Rule, node *Node, now time.Time) ruling {
	rec := recall(rule, node)
	found := survey(rule, node, &rec, now)
	r := ruling{state: Held, until: found.until}
	switch ready := found.since.Add(rule.MinReady); {
	case found.met && rule.Boot && !node.ready():
		r.cause = CauseNotReady
	case found.met && rule.MinReady > 0 && now.Before(ready):
		r.cause, r.until, r.ready = CauseMinReady, earlier(r.until, ready), ready
	case found.met:
		return ruling{state: Released, until: found.until}
	case rule.forgives() && remembered(rule, node).Expired != "":
		return ruling{state: Released, cause: CauseDeadline}
	}
	return withDeadline(r, rule, node, &rec, now)
}

// withDeadline is the ruling of a held node once its deadline is looked at.
func withDeadline(r ruling, rule *Rule, node *Node, rec *record, now time.Time) ruling {
	since := rec.since(node)
	if rule.Deadline == 0 || since.IsZero() || rec.Waits || !owns(rule, node) || !node.Has(rule.ID()) { // else it begins anew
		return r
	}
	over := since.Add(rule.Deadline)
	switch {
	case now.Before(over):
		r.until = earlier(r.until, over)
	case rule.ReleaseStuck && (!rule.Boot || node.ready()): // else it would be held again at once
		released := ruling{state: Released, cause: CauseDeadline, stuck: true}
		if r.cause == CauseMinReady { // only not for long enough: there is nothing to forgive
			released.cause = ""
		}
		return released
	default:
		r.stuck = true
	}
	return r
}

// findings are how all requirements of a rule compare with a node at a time.
type findings struct {
	met bool
	// since is when that began, if it is met.
	since time.Time
	// until is when the first heartbeat becomes too old; zero: never.
	until time.Time
}

// survey compares all requirements with the node. With anyOf one that is met is enough, and that
// which has been met for the longest time counts.
func survey(rule *Rule, node *Node, rec *record, now time.Time) findings {
	f := findings{met: !rule.AnyOf || len(rule.Requirements) == 0}
	for i := range rule.Requirements {
		requirement := &rule.Requirements[i]
		seen := look(requirement, node, rec, now)
		f.until = earlier(f.until, seen.until)
		if met := seen.status == requirement.RequiredStatus; !met {
			f.met = f.met && rule.AnyOf
			continue
		}
		switch {
		case !rule.AnyOf:
			f.since = later(f.since, seen.since)
		case !f.met:
			f.met, f.since = true, seen.since
		case seen.since.Before(f.since):
			f.since = seen.since
		}
	}
	f.since = metSince(rule, node, rec, f.since, now)
	return f
}

// metSince is since when the requirements count as met. Of a node that is not held the conditions
// themselves tell. Of one that is, we saw them being met and wrote that down: the times in
// conditions are what somebody else says, and nothing says how old a heartbeat was at the time.
func metSince(rule *Rule, node *Node, rec *record, transition, now time.Time) time.Time {
	held := owns(rule, node) || node.Has(rule.ID())
	if !held && (!rule.Bootstrap || node.Created.Before(rule.Created)) {
		return time.Time{} // it is in use and was not held, so there is nothing to wait for
	}
	if transition.After(now) { // a clock that is ahead
		transition = now
	}
	if !held {
		return transition
	}
	if noted := rec.metTime(); !noted.IsZero() {
		return later(transition, noted)
	}
	return now
}

// sight is what counts of a condition: its status, since when and until when that is so, as far as
// that is known.
type sight struct {
	status corev1.ConditionStatus
	doubt  Doubt
	since  time.Time
	until  time.Time
}

// Doubt is why a condition that a node has is not believed.
type Doubt string

const (
	// DoubtSilent says that its last heartbeat is too old.
	DoubtSilent Doubt = "Silent"
	// DoubtNoHeartbeat says that it has no heartbeat, though the rule limits its age.
	DoubtNoHeartbeat Doubt = "NoHeartbeat"
	// DoubtAhead says that its heartbeat is from a time to come.
	DoubtAhead Doubt = "Ahead"
	// DoubtEarlierBoot says that nobody has reported it since the node booted.
	DoubtEarlierBoot Doubt = "EarlierBoot"
)

// look is what counts of the node's condition for a requirement.
func look(requirement *v1alpha1.ConditionRequirement, node *Node, rec *record, now time.Time) sight {
	condition := node.condition(requirement.Type)
	if condition == nil {
		return sight{status: currentStatus(requirement, node)}
	}
	s := sight{status: condition.Status, since: condition.LastTransitionTime.Time}
	if s.doubt, s.until = doubt(requirement, condition, rec, now); s.doubt != "" || s.status == "" {
		s.status = corev1.ConditionUnknown
	}
	switch s.doubt {
	case DoubtSilent:
		s.since = condition.LastHeartbeatTime.Add(requirement.MaxAge.Duration)
	case DoubtEarlierBoot:
		s.since = later(s.since, rec.since(node))
	}
	return s
}

// doubt is why a condition does not count, and else until when it does; zero: for ever.
func doubt(requirement *v1alpha1.ConditionRequirement, condition *corev1.NodeCondition, rec *record, now time.Time) (Doubt, time.Time) {
	beat := condition.LastHeartbeatTime.Time
	if old, known := rec.Beats[requirement.Type]; known && !rec.Armed && old == beatOf(condition) {
		return DoubtEarlierBoot, time.Time{}
	}
	if requirement.MaxAge == nil {
		return "", time.Time{}
	}
	over := beat.Add(requirement.MaxAge.Duration)
	switch {
	case beat.IsZero():
		return DoubtNoHeartbeat, time.Time{}
	case beat.After(now.Add(maxSkew)), len(rec.Ahead) > 0 && rec.Ahead[requirement.Type] == beatOf(condition):
		return DoubtAhead, time.Time{} // and it stays so: it says nothing of when it was written
	case !now.Before(over):
		return DoubtSilent, time.Time{}
	default:
		return "", over
	}
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
