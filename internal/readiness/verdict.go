package readiness

import (
	"fmt"

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
		observations[i] = observe(requirement, node)
	}
	return observations
}

func observe(requirement v1alpha1.ConditionRequirement, node *Node) Observation {
	o := Observation{Requirement: requirement, Current: corev1.ConditionUnknown}
	condition := node.condition(requirement.Type)
	switch {
	case condition == nil && requirement.DefaultStatus != "":
		o.Current, o.Missing = requirement.DefaultStatus, true
	case condition == nil:
		o.Missing = true
	case condition.Status != "":
		o.Current = condition.Status
	}
	return o
}

// Evaluate is the rule's answer for the node. A rule that is being deleted, is withdrawn or
// is not accepted speaks of no node.
func Evaluate(rule *Rule, node *Node) Verdict {
	verdict := Verdict{Rule: rule, State: NotSelected}
	if !rule.speaks() || !rule.Selects(node) {
		return verdict
	}
	verdict.State = Released
	if rule.Bootstrap && completed(rule, node) {
		verdict.Completed = true
		return verdict
	}
	met := 0
	for _, requirement := range rule.Requirements {
		if o := observe(requirement, node); o.Met() {
			met++
		} else {
			verdict.Unmet = append(verdict.Unmet, o)
		}
	}
	if rule.AnyOf && met > 0 {
		verdict.Unmet = nil
	}
	if len(verdict.Unmet) > 0 {
		verdict.State = Held
	}
	return verdict
}

// completed says whether the node remembers that the rule released it. A record of the
// older form counts only on nodes that are older than our knowledge of the rule: a node
// that joins later cannot bring one along.
func completed(rule *Rule, node *Node) bool {
	if has(node.Annotations, rule.completedKey) {
		return true
	}
	return has(node.Annotations, rule.olderCompletedKey) && (rule.TakenOver.IsZero() || node.Created.Before(rule.TakenOver))
}
