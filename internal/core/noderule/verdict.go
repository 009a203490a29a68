package noderule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// State is what a verdict says.
type State string

const (
	// NotSelected says that the rule does not speak of the node.
	NotSelected State = "NotSelected"
	// Held says that the node keeps the rule's taint.
	Held State = "Held"
	// Released says that the node does not carry the rule's taint.
	Released State = "Released"
)

// Verdict is one rule's answer for one node, with its reason. A rule that only previews
// answers as if it were enforced.
type Verdict struct {
	Rule  *Rule
	State State

	// Unmet are the requirements that hold the node back, or would, in the order of the spec. With
	// anyOf these are all of them. There are none where something else holds it: see Cause.
	Unmet []Observation

	// Completed says that a bootstrap-only rule has released the node before.
	Completed bool

	// Cause is why the state is not the one that the requirements alone ask for; empty if it is.
	Cause Cause
	// WaitsFor is the rule that must release the node first, with CauseDependency.
	WaitsFor *Rule
	// Stuck says that the node has been held longer than the rule's deadline.
	Stuck bool
	// Until is when time alone can change the answer; zero: never.
	Until time.Time
	// Ready is when the requirements, if they stay met, will have been so for long enough, with
	// CauseMinReady.
	Ready time.Time
}

// Observation compares one requirement with a node.
type Observation struct {
	Requirement v1alpha1.ConditionRequirement
	// Current is the status that counts: the node's, else the default, else Unknown.
	Current corev1.ConditionStatus
	// Missing says that the node has no such condition.
	Missing bool
	// Doubt is why the node's condition is not believed and counts as Unknown; empty if it is.
	Doubt Doubt
	// Since is when that status began to count; for a condition that is missing, when the node was
	// created.
	Since time.Time
}

// Met says whether the requirement is met.
func (o Observation) Met() bool { return o.Current == o.Requirement.RequiredStatus }

// String reads as in "NetworkReady is Unknown, must be True".
func (o Observation) String() string {
	current := string(o.Current)
	if doubts := o.Doubts(); doubts != "" {
		current += " (" + doubts + ")"
	}
	return fmt.Sprintf("%s is %s, must be %s", o.Requirement.Type, current, o.Requirement.RequiredStatus)
}

// Doubts are the words for why the node's condition is not believed; empty if it is.
func (o Observation) Doubts() string {
	switch o.Doubt {
	case DoubtSilent:
		return fmt.Sprintf("no heartbeat for more than %s", o.Requirement.MaxAge.Duration)
	case DoubtNoHeartbeat:
		return "it has no heartbeat, and maxAge asks for one"
	case DoubtAhead:
		return "its heartbeat is from a time to come: is the node's clock right?"
	case DoubtEarlierBoot:
		return "not reported since the node booted"
	default:
		return ""
	}
}

// Observe compares every requirement of the rule with the node, in the order of the spec.
func Observe(rule *Rule, node *Node, now time.Time) []Observation {
	var rec record
	if rule.timed {
		rec = recall(rule, node)
	}
	observations := make([]Observation, len(rule.Requirements))
	for i := range rule.Requirements {
		requirement := &rule.Requirements[i]
		seen := look(requirement, node, &rec, now)
		o := Observation{Requirement: *requirement, Current: seen.status, Missing: node.condition(requirement.Type) == nil, Doubt: seen.doubt, Since: seen.since}
		if o.Missing {
			o.Since = node.Created
		}
		observations[i] = o
	}
	return observations
}

// currentStatus is the status that counts for a requirement.
func currentStatus(requirement *v1alpha1.ConditionRequirement, node *Node) corev1.ConditionStatus {
	if condition := node.condition(requirement.Type); condition != nil {
		return cmp.Or(condition.Status, corev1.ConditionUnknown)
	}
	return cmp.Or(requirement.DefaultStatus, corev1.ConditionUnknown)
}

// Evaluate is the rule's answer for the node at a time. A rule that is being deleted, is
// withdrawn or is not accepted speaks of no node.
func Evaluate(rule *Rule, node *Node, now time.Time) Verdict {
	return verdictOf(rule, node, now, judge(rule, node, now))
}

func verdictOf(rule *Rule, node *Node, now time.Time, r ruling) Verdict {
	verdict := Verdict{Rule: rule, State: r.state, Completed: r.completed, Cause: r.cause, Stuck: r.stuck, Until: r.until, Ready: r.ready}
	switch {
	case r.cause == CauseDependency:
		verdict.WaitsFor = dependency(rule, node, now)
	case r.blames():
		verdict.Unmet = slices.DeleteFunc(Observe(rule, node, now), Observation.Met)
	case r.completed && byDeadline(node.Annotations[rule.completedKey]):
		verdict.Cause = CauseDeadline
	}
	return verdict
}

// ruling is the verdict without its words.
func (v *Verdict) ruling() ruling {
	return ruling{state: v.State, completed: v.Completed, cause: v.Cause, stuck: v.Stuck, until: v.Until, ready: v.Ready}
}

// meets says whether the node has what the rule requires. With allOf the first requirement
// that is not met decides, with anyOf the first one that is.
func meets(node *Node, rule *Rule) bool {
	for i := range rule.Requirements {
		if met := currentStatus(&rule.Requirements[i], node) == rule.Requirements[i].RequiredStatus; met == rule.AnyOf {
			return met
		}
	}
	return !rule.AnyOf || len(rule.Requirements) == 0
}

// hasCompleted says whether the node remembers that the rule released it. A record of the
// older form counts only on nodes that are older than our knowledge of the rule: a node
// that joins later cannot bring one along.
func hasCompleted(rule *Rule, node *Node) bool {
	if value, ok := node.Annotations[rule.completedKey]; ok {
		boot, told := completedIn(value)
		return !rule.Boot || !told || node.BootID == "" || boot == node.BootID
	}
	return has(node.Annotations, rule.olderCompletedKey) && (rule.TakenOver.IsZero() || node.Created.Before(rule.TakenOver))
}
