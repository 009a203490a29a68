package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Node is the row of one node.
type Node struct {
	Name    string    `json:"name"`
	UID     types.UID `json:"uid"`
	Created time.Time `json:"created"`

	// State is Held while the node has a taint because of a rule, Released if enforced rules select the node and
	// none holds it, else NotSelected.
	State noderule.State `json:"state"`
	// Since is when the longest of its holds began; zero if it is not held, or if the time is unknown.
	Since time.Time `json:"since,omitzero"`
	// Settled means that the manager has no change left for the node.
	Settled bool `json:"settled"`

	// Ready is the status of the condition Ready; Unknown if it is absent.
	Ready corev1.ConditionStatus `json:"ready"`
	// Unschedulable means that the node is cordoned.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// OtherTaints are taints that keep pods away and belong to no rule, as key=value:effect.
	OtherTaints []string `json:"otherTaints,omitempty"`

	// Rules are the rules that select the node or still have a record on it, oldest first.
	Rules []Standing `json:"rules,omitempty"`
}

// Standing is the verdict of one rule for a node, and what the manager has applied.
type Standing struct {
	Rule  string         `json:"rule"`
	Taint string         `json:"taint"`
	State noderule.State `json:"state"`

	// Held means that the node has the taint because of the rule. It differs from State until the node is settled,
	// and for dry-run rules.
	Held    bool `json:"held"`
	Settled bool `json:"settled"`
	// Preview means that the rule is a dry run: State is what an enforced rule would do.
	Preview bool `json:"preview,omitempty"`
	// Completed means that a bootstrap-only rule has completed on the node.
	Completed bool `json:"completed,omitempty"`

	// Origin and Since describe a hold. Since is zero if unknown.
	Origin noderule.Origin `json:"origin,omitempty"`
	Since  time.Time       `json:"since,omitzero"`

	// Met is when the requirements last became met; zero while they are not.
	Met time.Time `json:"met,omitzero"`

	// Missing are the unmet requirements, in the order of the spec.
	Missing []Missing `json:"missing,omitempty"`

	// Cause is the reason if State does not follow from the requirements alone; else empty.
	Cause noderule.Cause `json:"cause,omitempty"`
	// WaitsFor is the rule that must release the node first (dependsOn).
	WaitsFor string `json:"waitsFor,omitempty"`
	// Stuck means that the node has been held for longer than the rule's deadline.
	Stuck bool `json:"stuck,omitempty"`
	// Until is when minReadySeconds will have passed, if the requirements are met.
	Until time.Time `json:"until,omitzero"`
}

// Missing is a requirement that is not met.
type Missing struct {
	Type     string                 `json:"type"`
	Current  corev1.ConditionStatus `json:"current"`
	Required corev1.ConditionStatus `json:"required"`
	// Absent means that the node has no such condition.
	Absent bool `json:"absent,omitempty"`
	// Since is when the status became effective. For an absent condition it is when the node was created.
	Since time.Time `json:"since,omitzero"`
	// WhyUnknown is the reason why the node's status counts as Unknown; empty if the status counts.
	WhyUnknown string `json:"whyUnknown,omitempty"`
}

// Value returns the effective status, and the reason if it is not the node's status.
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

// String returns e.g. "NetworkReady is Unknown, must be True".
func (m Missing) String() string {
	return m.Type + " is " + m.Value() + ", must be " + string(m.Required)
}

// Node returns the row of a node at a time.
func (b *Book) Node(obj *corev1.Node, now time.Time) Node {
	return b.node(obj, now, b.limited)
}

// node returns the row of a node. Limited reports whether a rule that would hold the node leaves it released because
// of maxUnavailable.
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

// add merges the standing of one more rule into the row.
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

// limited reports whether the manager leaves the node released because of the rule's maxUnavailable, according to
// the rule's status: only the manager counts all nodes. If the status lists fewer nodes than it counts, each
// unlisted node that the rule would hold is taken as limited.
func (b *Book) limited(rule *noderule.Rule, node *noderule.Node) bool {
	status := &b.objects[rule.UID].Status
	return slices.Contains(status.LimitedNodes, node.Name) || status.Summary != nil && int(status.Summary.Limited) > len(status.LimitedNodes)
}

func standingOf(s noderule.Standing, node *noderule.Node, now time.Time) Standing {
	standing := Standing{
		Rule:  s.Rule.Name,
		Taint: s.Rule.ID().String(),
		State: s.State,

		// A taint that another writer added holds the node as soon as the verdict is Held.
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

// metSince returns when the requirements became met: with allOf the last one, with anyOf the first one. They must be
// met now.
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

// CompareNodes orders rows: held nodes first, longest first, then by name.
func CompareNodes(a, b Node) int {
	rank := map[noderule.State]int{noderule.Held: 0, noderule.Released: 1, noderule.NotSelected: 2}
	return cmp.Or(
		cmp.Compare(rank[a.State], rank[b.State]),
		compareTimes(a.Since, b.Since),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareTimes orders times: earliest first, unknown (zero) times last.
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
