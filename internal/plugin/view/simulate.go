package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// Simulation is the effect that rules would have on nodes if they were applied.
type Simulation struct {
	// Rules are the rows of the rules that would be applied, oldest first.
	Rules []Rule `json:"rules"`
	// Effects are the nodes whose taints would change at once, by name.
	Effects []Effect `json:"effects,omitempty"`
	// Replaced are existing rules that cannot be changed in place. They are simulated as deleted and recreated.
	Replaced []string `json:"replaced,omitempty"`
	// Nodes is the number of evaluated nodes.
	Nodes int `json:"nodes"`
	// AsOf is the time of the nodes' state, if it is not now.
	AsOf time.Time `json:"asOf,omitzero"`
}

// Simulated is the standing of a rule that does not exist yet.
const Simulated = "Simulated"

// Effect is the change of one node.
type Effect struct {
	Node string `json:"node"`
	Rule string `json:"rule"`
	// Change is Added, Removed or Adopted.
	Change noderule.ChangeKind `json:"change"`
	Taint  string              `json:"taint"`
	// Evicts means that pods that do not tolerate the taint would be evicted.
	Evicts  bool      `json:"evicts,omitempty"`
	Missing []Missing `json:"missing,omitempty"`
	// Cause is the reason if the change does not follow from the requirements alone; else empty.
	Cause noderule.Cause `json:"cause,omitempty"`
}

// Simulate returns what the candidates would do to the nodes, in addition to the existing rules. A candidate replaces
// the rule of the same name. Candidates with dryRun are simulated as enforced. Replaced are the names of rules that
// the API server would not change into the candidate: they are simulated as deleted and recreated.
func Simulate(rules, candidates []*v1alpha1.NodeReadinessRule, replaced []string, nodes []*corev1.Node, now time.Time) Simulation {
	before, after := NewBook(rules), NewBook(merge(rules, candidates, replaced, now))
	listed := before.compiled.Taints() // the manager has listed the existing rules
	simulation := Simulation{Nodes: len(nodes), Replaced: replaced}
	tally := Tally{}
	limitsBefore, limitsAfter := before.limits(nodes, now), after.limits(nodes, now)
	for _, obj := range nodes {
		node := noderule.NodeOf(obj)
		already := before.plan(node, limitsBefore, listed, now).Changes
		plan := after.plan(node, limitsAfter, listed, now)
		for _, change := range plan.Changes {
			if slices.Contains(already, change) || after.objects[change.UID] == nil && before.objects[change.UID] == nil {
				continue // the change would happen anyway, or is of a rule that was not passed
			}
			if change.Kind == noderule.Added || change.Kind == noderule.Removed || change.Kind == noderule.Adopted {
				simulation.Effects = append(simulation.Effects, after.effect(change, node, now))
			}
		}
		applied := obj.DeepCopy()
		as := plan.Apply(node)
		applied.Spec.Taints, applied.Annotations = as.Taints, as.Annotations
		tally.Add(after.node(applied, now, limitsAfter.Hit))
	}
	for _, row := range after.Rules(tally) {
		if !slices.ContainsFunc(candidates, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == row.Name }) {
			continue
		}
		if row.Standing == Unobserved {
			row.Standing, row.Message = Simulated, ""
		}
		simulation.Rules = append(simulation.Rules, row)
	}
	slices.SortStableFunc(simulation.Effects, func(a, b Effect) int { return strings.Compare(a.Node, b.Node) })
	return simulation
}

// limits returns the nodes that rules leave released because of maxUnavailable.
func (b *Book) limits(nodes []*corev1.Node, now time.Time) noderule.Limits {
	return b.compiled.Limits(func(yield func(*noderule.Node) bool) {
		for _, obj := range nodes {
			if !yield(noderule.NodeOf(obj)) {
				return
			}
		}
	}, now)
}

// plan returns the changes that a manager would make to the node.
func (b *Book) plan(node *noderule.Node, limits noderule.Limits, listed noderule.RuleTaints, now time.Time) *noderule.Plan {
	e := b.compiled.Evaluate(node, now)
	e.ApplyLimits(limits)
	e.ApplyDependencies()
	return e.Plan(listed)
}

func (b *Book) effect(change noderule.Change, node *noderule.Node, now time.Time) Effect {
	effect := Effect{Node: node.Name, Rule: change.Rule, Change: change.Kind, Taint: change.Taint.String()}
	effect.Evicts = change.Kind == noderule.Added && change.Taint.Effect == corev1.TaintEffectNoExecute
	if rule := b.compiled.Rule(change.UID); rule != nil {
		verdict := noderule.Evaluate(rule, node, now)
		effect.Cause = verdict.Cause
		for _, unmet := range verdict.Unmet {
			effect.Missing = append(effect.Missing, missingOf(unmet))
		}
	}
	return effect
}

// merge returns the rules as they would be. A replaced rule gets a new UID, so that the nodes' records of the old rule
// do not count.
func merge(rules, candidates []*v1alpha1.NodeReadinessRule, replaced []string, now time.Time) []*v1alpha1.NodeReadinessRule {
	merged := slices.Clone(rules)
	for _, candidate := range candidates {
		rule := candidate.DeepCopy()
		rule.Spec.DryRun = false
		rule.UID, rule.CreationTimestamp, rule.Status = types.UID("simulated-"+rule.Name), metav1.NewTime(now), v1alpha1.NodeReadinessRuleStatus{}
		i := slices.IndexFunc(merged, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == rule.Name })
		if i < 0 {
			merged = append(merged, rule)
			continue
		}
		if !slices.Contains(replaced, rule.Name) {
			rule.UID, rule.CreationTimestamp, rule.Status = merged[i].UID, merged[i].CreationTimestamp, merged[i].Status
		}
		merged[i] = rule
	}
	return merged
}
