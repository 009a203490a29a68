package noderule

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// State is the result of a rule for a node.
type State string

const (
	// NotSelected means that the rule has no effect on the node.
	NotSelected State = "NotSelected"
	// Held means that the node must have the rule's taint.
	Held State = "Held"
	// Released means that the node must not have the rule's taint.
	Released State = "Released"
)

// Verdict is the result of one rule for one node, with its explanation. A rule in dry run has the verdicts that it
// would have if it were enforced.
type Verdict struct {
	Rule  *Rule
	State State

	// Unmet are the requirements that hold the node, or would, in the order of the spec. With anyOf these are all
	// of them. It is empty if something else holds the node: see Cause.
	Unmet []Observation

	// Cause is why the state is not the one that the requirements alone give; empty if it is.
	Cause Cause
	// WaitsFor is the rule that must release the node first, with CauseDependency.
	WaitsFor *Rule
	// Until is when time alone can change the verdict; zero: never.
	Until time.Time
	// Ready is when the requirements, if they stay met, will have been met for minReadySeconds, with
	// CauseMinReady.
	Ready time.Time
	// Completed means that a bootstrap-only rule has released the node before.
	Completed bool
	// Stuck means that the node has been held longer than the rule's deadline.
	Stuck bool

	// facts are what the verdict was made from.
	facts facts
}

// Takes reports whether holding the node removes a node in use, for a rule with maxUnavailable. For a rule in dry run it
// reports what the rule would do.
func (v *Verdict) Takes() bool { return v.State == Held && v.facts.takes() }

// Limit changes the verdict to that of a rule whose maxUnavailable is reached: the node stays released.
func (v *Verdict) Limit() {
	v.State, v.Cause, v.Stuck = Released, CauseLimit, false
}

// outcome is the verdict without its explanation.
func (v *Verdict) outcome() outcome {
	return outcome{state: v.State, completed: v.Completed, cause: v.Cause, stuck: v.Stuck, until: v.Until, ready: v.Ready}
}

// Observation compares one requirement with a node.
type Observation struct {
	Requirement v1alpha1.ConditionRequirement
	// Current is the status that counts: that of the node's condition, otherwise the default, otherwise Unknown.
	Current corev1.ConditionStatus
	// Missing means that the node has no such condition.
	Missing bool
	// UnknownReason is why the node's condition counts as Unknown; empty if its status counts.
	UnknownReason UnknownReason
	// Since is when that status began to count; for a condition that is missing, when the node was created.
	Since time.Time
}

// Met reports whether the requirement is met.
func (o Observation) Met() bool { return o.Current == o.Requirement.RequiredStatus }

// String reads as in "NetworkReady is Unknown, must be True".
func (o Observation) String() string {
	current := string(o.Current)
	if why := o.WhyUnknown(); why != "" {
		current += " (" + why + ")"
	}
	return fmt.Sprintf("%s is %s, must be %s", o.Requirement.Type, current, o.Requirement.RequiredStatus)
}

// WhyUnknown explains the UnknownReason; empty if there is none.
func (o Observation) WhyUnknown() string {
	switch o.UnknownReason {
	case UnknownHeartbeatTooOld:
		return fmt.Sprintf("no heartbeat for more than %s", o.Requirement.MaxAge.Duration)
	case UnknownNoHeartbeat:
		return "it has no heartbeat, and maxAge requires one"
	case UnknownHeartbeatInFuture:
		return "its heartbeat is in the future: check the node's clock"
	case UnknownEarlierBoot:
		return "not reported since the node booted"
	default:
		return ""
	}
}

// Observe compares every requirement of the rule with the node, in the order of the spec.
func Observe(rule *Rule, node *Node, now time.Time) []Observation {
	f := factsOf(rule, node)
	return f.observe(now)
}

func (f *facts) observe(now time.Time) []Observation {
	observations := make([]Observation, len(f.rule.Requirements))
	for i := range f.rule.Requirements {
		requirement := &f.rule.Requirements[i]
		c := f.condition(requirement, now)
		o := Observation{Requirement: *requirement, Current: c.status, Missing: f.node.condition(requirement.Type) == nil, UnknownReason: c.reason, Since: c.since}
		if o.Missing {
			o.Since = f.node.Created
		}
		observations[i] = o
	}
	return observations
}

// Evaluate returns the verdict of one rule for the node at a time. A rule that is being deleted, is withdrawn or is not
// accepted selects no node.
func Evaluate(rule *Rule, node *Node, now time.Time) Verdict {
	var v Verdict
	v.evaluate(rule, node, now)
	v.explain(now)
	return v
}

// evaluate sets the verdict, without its explanation.
func (v *Verdict) evaluate(rule *Rule, node *Node, now time.Time) {
	v.facts.decode(rule, node)
	o := v.facts.evaluate(now)
	v.Rule, v.State, v.Completed, v.Cause, v.Stuck, v.Until, v.Ready = rule, o.state, o.completed, o.cause, o.stuck, o.until, o.ready
}

// explain adds the explanation.
func (v *Verdict) explain(now time.Time) {
	f := &v.facts
	switch {
	case v.Cause == CauseDependency:
		v.WaitsFor = f.blockedBy(now)
	case v.hasUnmet():
		v.Unmet = slices.DeleteFunc(f.observe(now), Observation.Met)
	case v.Completed && releasedByDeadline(f.completion):
		v.Cause = CauseDeadline
	}
}

// hasUnmet reports whether unmet requirements hold the node, or would.
func (v *Verdict) hasUnmet() bool {
	return v.State == Held && v.Cause == "" || v.Cause == CauseLimit || v.Cause == CauseDeadline
}

// Standing is a rule's verdict for a node, and what of it the node has.
type Standing struct {
	Verdict

	// Tainted means that the node has the rule's taint, whatever added it.
	Tainted bool
	// Owned means that the node has the rule's ownership record.
	Owned bool
}

// Stand evaluates the rule for the node, and compares the verdict with the node.
func Stand(rule *Rule, node *Node, now time.Time) Standing {
	var s Standing
	s.evaluate(rule, node, now)
	s.explain(now)
	return s
}

// evaluate sets the standing, without the explanation of the verdict.
func (s *Standing) evaluate(rule *Rule, node *Node, now time.Time) {
	s.Verdict.evaluate(rule, node, now)
	s.Tainted, s.Owned = s.facts.tainted(), s.facts.owned()
}

// Holding reports whether the node has the taint because of the rule.
func (s Standing) Holding() bool { return s.Tainted && s.Owned }

// Settled reports whether the node is as the verdict requires.
func (s Standing) Settled() bool {
	switch s.Cause {
	case CauseDependency:
		return s.State != Held || s.Holding()
	case CauseLimit:
		return !s.Owned
	}
	switch s.State {
	case Held:
		return s.Holding()
	case Released:
		return !s.Owned && (s.Completed || !s.Tainted && !s.Rule.Bootstrap)
	default:
		return !s.Owned
	}
}

// CausedBy reports whether the transition of a condition at this time caused the verdict, and not the end of a wait, a
// heartbeat, its absence, a boot or a deadline.
func CausedBy(transition time.Time, v *Verdict, node *Node) bool {
	hold, held := HoldOf(v.Rule, node)
	switch {
	case v.Cause != "" || v.State == Released && v.Rule.MinReady > 0:
		return false
	case v.State == Released && held:
		return !transition.Before(hold.Since.Truncate(time.Second))
	}
	return !slices.ContainsFunc(v.Unmet, func(o Observation) bool { return o.UnknownReason != "" })
}
