package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/readiness"
)

// Simulation is what rules would do to nodes if they were applied.
type Simulation struct {
	// Rules are the lines about the rules that would be applied, oldest first.
	Rules []Rule `json:"rules"`
	// Effects are the nodes whose taints would change at once, by name.
	Effects []Effect `json:"effects,omitempty"`
	// Replaced are rules that are there and cannot be changed so: they would have to be deleted
	// and created anew, and are taken as if they were.
	Replaced []string `json:"replaced,omitempty"`
	// Nodes is how many nodes were looked at.
	Nodes int `json:"nodes"`
}

// Simulated is the standing of a rule that is not there yet.
const Simulated = "Simulated"

// Effect is what would happen to one node.
type Effect struct {
	Node string `json:"node"`
	Rule string `json:"rule"`
	// Change is Added, Removed or Adopted.
	Change readiness.ChangeKind `json:"change"`
	Taint  string               `json:"taint"`
	// Evicts says that pods that do not tolerate the taint would be evicted.
	Evicts  bool      `json:"evicts,omitempty"`
	Missing []Missing `json:"missing,omitempty"`
}

// Simulate says what the candidates would do to the nodes, beside the rules that are there. A
// candidate takes the place of a rule of the same name. One that only previews is taken as if
// it were enforced: that is the question.
func Simulate(rules, candidates []*v1alpha1.NodeReadinessRule, nodes []*corev1.Node, now time.Time) Simulation {
	merged, replaced := merge(rules, candidates, now)
	before, after := NewBook(rules), NewBook(merged)
	simulation := Simulation{Nodes: len(nodes), Replaced: replaced}
	tally := Tally{}
	for _, obj := range nodes {
		node := readiness.NodeOf(obj)
		already := before.compiled.Plan(node, now).Changes
		plan := after.compiled.Plan(node, now)
		for _, change := range plan.Changes {
			if slices.Contains(already, change) || after.objects[change.UID] == nil && before.objects[change.UID] == nil {
				continue // it would happen anyway, or speaks of a rule that was not given
			}
			if change.Kind == readiness.Added || change.Kind == readiness.Removed || change.Kind == readiness.Adopted {
				simulation.Effects = append(simulation.Effects, after.effect(change, node))
			}
		}
		applied := obj.DeepCopy()
		as := plan.Apply(node)
		applied.Spec.Taints, applied.Annotations = as.Taints, as.Annotations
		tally.Add(after.Node(applied))
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

func (b *Book) effect(change readiness.Change, node *readiness.Node) Effect {
	effect := Effect{Node: node.Name, Rule: change.Rule, Change: change.Kind, Taint: change.Taint.String()}
	effect.Evicts = change.Kind == readiness.Added && change.Taint.Effect == corev1.TaintEffectNoExecute
	if rule := b.compiled.Rule(change.UID); rule != nil {
		for _, unmet := range readiness.Evaluate(rule, node).Unmet {
			effect.Missing = append(effect.Missing, missingOf(unmet, node))
		}
	}
	return effect
}

// merge is the rules as they would be, and the names of those that would be created anew: then
// nothing that a node remembers of the old one counts.
func merge(rules, candidates []*v1alpha1.NodeReadinessRule, now time.Time) (merged []*v1alpha1.NodeReadinessRule, replaced []string) {
	merged = slices.Clone(rules)
	for _, candidate := range candidates {
		rule := candidate.DeepCopy()
		rule.Spec.DryRun = false
		rule.UID, rule.CreationTimestamp, rule.Status = types.UID("simulated-"+rule.Name), metav1.NewTime(now), v1alpha1.NodeReadinessRuleStatus{}
		i := slices.IndexFunc(merged, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == rule.Name })
		switch {
		case i < 0:
			merged = append(merged, rule)
			continue
		case changeable(merged[i], rule):
			rule.UID, rule.CreationTimestamp, rule.Status = merged[i].UID, merged[i].CreationTimestamp, merged[i].Status
		default:
			replaced = append(replaced, rule.Name)
		}
		merged[i] = rule
	}
	return merged, replaced
}

// changeable says whether the rule that is there can become the other one: whether it only
// previews is all that can change.
func changeable(rule, other *v1alpha1.NodeReadinessRule) bool {
	was, is := rule.Spec, other.Spec
	was.DryRun, is.DryRun = false, false
	if was.ConditionPolicy == "" {
		was.ConditionPolicy = v1alpha1.ConditionPolicyAllOf
	}
	if is.ConditionPolicy == "" {
		is.ConditionPolicy = v1alpha1.ConditionPolicyAllOf
	}
	was.Taint.TimeAdded, is.Taint.TimeAdded = nil, nil
	return equality.Semantic.DeepEqual(was, is)
}
