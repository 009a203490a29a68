package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Node is one line about a node.
type Node struct {
	Name    string    `json:"name"`
	UID     types.UID `json:"uid"`
	Created time.Time `json:"created"`

	// State is Held while the node carries a taint because of a rule, Released when rules
	// speak of it and none holds it, else NotSelected.
	State noderule.State `json:"state"`
	// Since is when the longest of its holds began; zero if it is not held, or nobody knows.
	Since time.Time `json:"since,omitzero"`
	// Settled says that the node is as all rules want it.
	Settled bool `json:"settled"`

	// Ready is what the kubelet says, Unknown if nothing.
	Ready corev1.ConditionStatus `json:"ready"`
	// Unschedulable says that somebody has cordoned the node.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// OtherTaints are those that keep pods away and are of no rule, as key=value:effect.
	OtherTaints []string `json:"otherTaints,omitempty"`

	// Rules are those that speak of the node or have left something there, oldest first.
	Rules []Standing `json:"rules,omitempty"`
}

// Standing is how one rule stands with a node.
type Standing struct {
	Rule  string         `json:"rule"`
	Taint string         `json:"taint"`
	State noderule.State `json:"state"`

	// Held says that the node carries the taint because of the rule. It differs from State
	// until the node is settled, and where the rule only previews.
	Held    bool `json:"held"`
	Settled bool `json:"settled"`
	// Preview says that the rule changes nothing: State is what would be.
	Preview bool `json:"preview,omitempty"`
	// Completed says that a bootstrap-only rule is done with the node.
	Completed bool `json:"completed,omitempty"`

	// Origin and Since tell of a hold; a time that nobody knows is zero.
	Origin noderule.Origin `json:"origin,omitempty"`
	Since  time.Time       `json:"since,omitzero"`

	// Met is when the requirements last became met; zero while they are not.
	Met time.Time `json:"met,omitzero"`

	// Missing are the requirements that hold the node back, in the order of the spec.
	Missing []Missing `json:"missing,omitempty"`

	// Cause is why State is not the one that the requirements alone ask for; empty if it is.
	Cause noderule.Cause `json:"cause,omitempty"`
	// WaitsFor is the rule that must release the node first.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Stuck says that the node has been held for longer than the rule's deadline.
	Stuck bool `json:"stuck,omitempty"`
	// Until is when the requirements will have been met for long enough, if they are met.
	Until time.Time `json:"until,omitzero"`
}

// Missing is a requirement that is not met.
type Missing struct {
	Type     string                 `json:"type"`
	Current  corev1.ConditionStatus `json:"current"`
	Required corev1.ConditionStatus `json:"required"`
	// Absent says that the node has no such condition.
	Absent bool `json:"absent,omitempty"`
	// Since is when that status began to count; for a condition that is absent, when the node was
	// created.
	Since time.Time `json:"since,omitzero"`
	// WhyUnknown is why the status that the node has does not count; empty if it counts.
	WhyUnknown string `json:"whyUnknown,omitempty"`
}

// Value is the status that counts, and why it is not the one that the node has.
func (m Missing) Value() string {
	value := string(m.Current)
	if m.Absent {
		value = "not reported"
	}
	if m.WhyUnknown != "" {
		value += " (" + m.WhyUnknown + ")"
	}
	return value
}

// String reads as in "NetworkReady is Unknown, must be True".
func (m Missing) String() string {
	return m.Type + " is " + m.Value() + ", must be " + string(m.Required)
}

// Node is the line about a node at a time.
func (b *Book) Node(obj *corev1.Node, now time.Time) Node {
	return b.node(obj, now, b.limited)
}

// node is the line about a node. Limited says whether a rule that would take it away leaves it
// released because of maxUnavailable.
func (b *Book) node(obj *corev1.Node, now time.Time, limited func(*noderule.Rule, *noderule.Node) bool) Node {
	node := noderule.NodeOf(obj)
	row := Node{
		Name: node.Name, UID: node.UID, Created: node.Created,
		State: noderule.NotSelected, Settled: true,
		Ready: corev1.ConditionUnknown, Unschedulable: obj.Spec.Unschedulable,
	}
	if ready := condition(obj.Status.Conditions, string(corev1.NodeReady)); ready != nil {
		row.Ready = ready.Status
	}
	ours := map[noderule.TaintID]bool{}
	for _, rule := range b.compiled.Rules() {
		standing := noderule.Stand(rule, node, now)
		if standing.State == noderule.NotSelected && !standing.Owned {
			continue
		}
		if standing.Takes() && limited(rule, node) {
			standing.Limit()
		}
		s := standingOf(standing, node, now)
		row.Rules = append(row.Rules, s)
		row.add(s)
		ours[rule.ID()] = ours[rule.ID()] || s.Held
	}
	for _, taint := range node.Taints {
		id := noderule.TaintID{Key: taint.Key, Effect: taint.Effect}
		if !ours[id] && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			row.OtherTaints = append(row.OtherTaints, taint.ToString())
		}
	}
	return row
}

// add makes the line speak for one more rule.
func (n *Node) add(s Standing) {
	n.Settled = n.Settled && (s.Settled || s.Preview)
	switch {
	case s.Held:
		if n.State != noderule.Held || !s.Since.IsZero() && (n.Since.IsZero() || s.Since.Before(n.Since)) {
			n.Since = s.Since
		}
		n.State = noderule.Held
	case n.State == noderule.NotSelected && s.State != noderule.NotSelected && !s.Preview:
		n.State = noderule.Released
	}
}

// limited says whether the manager leaves the node released because of the rule's maxUnavailable,
// as far as the rule's status tells: a manager counts all nodes. Where it has more than it lists,
// those that are to be taken away and are not listed count as well.
func (b *Book) limited(rule *noderule.Rule, node *noderule.Node) bool {
	status := &b.objects[rule.UID].Status
	return slices.Contains(status.LimitedNodes, node.Name) || status.Summary != nil && int(status.Summary.Limited) > len(status.LimitedNodes)
}

func standingOf(s noderule.Standing, node *noderule.Node, now time.Time) Standing {
	standing := Standing{
		Rule:  s.Rule.Name,
		Taint: s.Rule.ID().String(),
		State: s.State,

		// A taint that somebody else put there holds the node as soon as the rule wants it to.
		Held:      s.Holding() || s.Tainted && s.State == noderule.Held && s.Rule.Active(),
		Settled:   s.Settled(),
		Preview:   s.Rule.DryRun && s.State != noderule.NotSelected,
		Completed: s.Completed,
		Cause:     s.Cause,
		Stuck:     s.Stuck,
		Until:     s.Ready,
	}
	if s.WaitsFor != nil {
		standing.WaitsFor = s.WaitsFor.Name
	}
	if hold, known := noderule.HoldOf(s.Rule, node); known && standing.Held {
		standing.Origin, standing.Since = hold.Origin, hold.Since
	}
	for _, unmet := range s.Unmet {
		standing.Missing = append(standing.Missing, missingOf(unmet))
	}
	if s.State == noderule.Released && !s.Completed && s.Cause == "" || s.Cause == noderule.CauseMinReady || s.Completed && allMet(s.Rule, node, now) {
		standing.Met = metSince(s.Rule, node, now)
	}
	return standing
}

func missingOf(o noderule.Observation) Missing {
	return Missing{Type: o.Requirement.Type, Current: o.Current, Required: o.Requirement.RequiredStatus, Absent: o.Missing, Since: o.Since, WhyUnknown: o.WhyUnknown()}
}

func allMet(rule *noderule.Rule, node *noderule.Node, now time.Time) bool {
	return !slices.ContainsFunc(noderule.Observe(rule, node, now), func(o noderule.Observation) bool { return !o.Met() })
}

// metSince is when the requirements, which are met, became so: with allOf when the last one
// did, with anyOf when the first one did.
func metSince(rule *noderule.Rule, node *noderule.Node, now time.Time) time.Time {
	var since time.Time
	for _, o := range noderule.Observe(rule, node, now) {
		if o.Met() && (since.IsZero() || rule.AnyOf == o.Since.Before(since)) {
			since = o.Since
		}
	}
	return since
}

func condition(conditions []corev1.NodeCondition, conditionType string) *corev1.NodeCondition {
	i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return string(c.Type) == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// CompareNodes orders lines: held nodes first, longest first, then by name.
func CompareNodes(a, b Node) int {
	rank := map[noderule.State]int{noderule.Held: 0, noderule.Released: 1, noderule.NotSelected: 2}
	return cmp.Or(
		cmp.Compare(rank[a.State], rank[b.State]),
		compareTimes(a.Since, b.Since),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareTimes puts what began first before the rest, and what nobody knows last.
func compareTimes(a, b time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}
