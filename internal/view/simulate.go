package view

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// Nodes is how many nodes were looked at.
	Nodes int `json:"nodes"`
}

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
	merged, names := merge(rules, candidates, now)
	before, after := NewBook(rules), NewBook(merged)
	simulation := Simulation{Nodes: len(nodes)}
	tally := Tally{}
	for _, obj := range nodes {
		node := readiness.NodeOf(obj)
		already := before.compiled.Plan(node, now).Changes
		plan := after.compiled.Plan(node, now)
		for _, change := range plan.Changes {
			if slices.Contains(already, change) || after.objects[change.UID] == nil {
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
		if names[row.Name] {
			simulation.Rules = append(simulation.Rules, row)
		}
	}
	slices.SortStableFunc(simulation.Effects, func(a, b Effect) int { return strings.Compare(a.Node, b.Node) })
	return simulation
}

func (b *Book) effect(change readiness.Change, node *readiness.Node) Effect {
	effect := Effect{Node: node.Name, Rule: change.Rule, Change: change.Kind, Taint: change.Taint.String()}
	effect.Evicts = change.Kind == readiness.Added && change.Taint.Effect == corev1.TaintEffectNoExecute
	for _, unmet := range readiness.Evaluate(b.compiled.Rule(change.UID), node).Unmet {
		effect.Missing = append(effect.Missing, missingOf(unmet, node))
	}
	return effect
}

// merge is the rules as they would be, and the names of the candidates.
func merge(rules, candidates []*v1alpha1.NodeReadinessRule, now time.Time) ([]*v1alpha1.NodeReadinessRule, map[string]bool) {
	merged := slices.Clone(rules)
	names := map[string]bool{}
	for _, candidate := range candidates {
		rule := candidate.DeepCopy()
		rule.Spec.DryRun = false
		names[rule.Name] = true
		i := slices.IndexFunc(merged, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == rule.Name })
		if i < 0 {
			rule.UID, rule.CreationTimestamp = types.UID("simulated-"+rule.Name), metav1.NewTime(now)
			merged = append(merged, rule)
			continue
		}
		rule.UID, rule.CreationTimestamp, rule.Status = merged[i].UID, merged[i].CreationTimestamp, merged[i].Status
		merged[i] = rule
	}
	return merged, names
}
