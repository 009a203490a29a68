package readiness

import (
	"cmp"
	"fmt"
	"slices"

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

	// Unmet are the requirements that hold the node back, in the order of the spec. With
	// anyOf these are all of them.
	Unmet []Observation

	// Completed says that a bootstrap-only rule has released the node before.
	Completed bool
}

// Observation compares one requirement with a node.
type Observation struct {
	Requirement v1alpha1.ConditionRequirement
	// Current is the status that counts: the node's, else the default, else Unknown.
	Current corev1.ConditionStatus
	// Missing says that the node has no such condition.
	Missing bool
}

// Met says whether the requirement is met.
func (o Observation) Met() bool { return o.Current == o.Requirement.RequiredStatus }

// String reads as in "NetworkReady is Unknown, must be True".
func (o Observation) String() string {
	return fmt.Sprintf("%s is %s, must be %s", o.Requirement.Type, o.Current, o.Requirement.RequiredStatus)
}

// Observe compares every requirement of the rule with the node, in the order of the spec.
func Observe(rule *Rule, node *Node) []Observation {
	observations := make([]Observation, len(rule.Requirements))
	for i, requirement := range rule.Requirements {
		current, missing := currentStatus(&requirement, node)
		observations[i] = Observation{Requirement: requirement, Current: current, Missing: missing}
	}
	return observations
}

// currentStatus is the status that counts for a requirement, and whether the node has no
// such condition.
func currentStatus(requirement *v1alpha1.ConditionRequirement, node *Node) (current corev1.ConditionStatus, missing bool) {
	if condition := node.condition(requirement.Type); condition != nil {
		return cmp.Or(condition.Status, corev1.ConditionUnknown), false
	}
	return cmp.Or(requirement.DefaultStatus, corev1.ConditionUnknown), true
}

// Evaluate is the rule's answer for the node. A rule that is being deleted, is withdrawn or
// is not accepted speaks of no node.
func Evaluate(rule *Rule, node *Node) Verdict {
	state, completed := judge(rule, node)
	verdict := Verdict{Rule: rule, State: state, Completed: completed}
	if state == Held {
		verdict.Unmet = slices.DeleteFunc(Observe(rule, node), Observation.Met)
	}
	return verdict
}

// judge is the verdict without its reason: all that deciding needs. It does not allocate.
func judge(rule *Rule, node *Node) (state State, completed bool) {
	switch {
	case !rule.speaks() || !rule.Selects(node):
		return NotSelected, false
	case rule.Bootstrap && hasCompleted(rule, node):
		return Released, true
	case meets(node, rule):
		return Released, false
	default:
		return Held, false
	}
}

// meets says whether the node has what the rule requires. With allOf the first requirement
// that is not met decides, with anyOf the first one that is.
func meets(node *Node, rule *Rule) bool {
	for i := range rule.Requirements {
		current, _ := currentStatus(&rule.Requirements[i], node)
		if met := current == rule.Requirements[i].RequiredStatus; met == rule.AnyOf {
			return met
		}
	}
	return !rule.AnyOf || len(rule.Requirements) == 0
}

// hasCompleted says whether the node remembers that the rule released it. A record of the
// older form counts only on nodes that are older than our knowledge of the rule: a node
// that joins later cannot bring one along.
func hasCompleted(rule *Rule, node *Node) bool {
	if has(node.Annotations, rule.completedKey) {
		return true
	}
	return has(node.Annotations, rule.olderCompletedKey) && (rule.TakenOver.IsZero() || node.Created.Before(rule.TakenOver))
}
