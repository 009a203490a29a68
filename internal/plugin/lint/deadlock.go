package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/reporters"
)

// checkWorkloads compares the rules with the reporters in the same files: a reporter must tolerate the taints of the
// nodes on which it runs, and each requirement needs a reporter.
func (r *Report) checkWorkloads(documents []document) {
	reporters, spaces := reportersIn(documents), namespacesIn(documents)
	for _, it := range reporters {
		for _, rule := range r.Rules {
			if !spaces.addsToleration(rule, it.document) {
				r.checkTolerates(it, rule)
			}
			r.checkHeartbeats(it, rule)
		}
	}
	r.checkReported(reporters)
}

// checkTolerates warns about a reporter that a rule keeps off the node: its own rule, which then never releases the
// node, or another rule that can hold the same nodes.
func (r *Report) checkTolerates(it reporter, rule *v1alpha1.NodeReadinessRule) {
	taint := corev1.Taint{Key: rule.Spec.Taint.Key, Value: rule.Spec.Taint.Value, Effect: rule.Spec.Taint.Effect}
	if reporters.Tolerates(&it.pod, &taint) {
		return
	}
	field := strings.Join(append(slices.Clone(podSpecs[it.GetKind()]), "tolerations"), ".")
	do := fmt.Sprintf("add the toleration {key: %s, operator: Exists}, or {operator: Exists} for every taint", taint.Key)
	if it.reportsFor(rule) {
		r.add(Warning, it.document, field,
			fmt.Sprintf("reports a condition of rule %q but does not tolerate its taint %s: the reporter never starts on a held node, and the node stays held", rule.Name, taint.ToString()), do)
		return
	}
	for _, own := range r.Rules {
		if !rule.Spec.DryRun && it.reportsFor(own) && overlap(own, rule) {
			r.add(Warning, it.document, field,
				fmt.Sprintf("reports a condition of rule %q but does not tolerate the taint %s of rule %q, which can hold the same nodes: the reporter starts only after that rule releases the node, and if the reporters of both rules have this problem, neither ever starts", own.Name, taint.ToString(), rule.Name), do)
			return
		}
	}
}

// reportsFor reports whether the reporter may write a condition of the rule.
func (r *reporter) reportsFor(rule *v1alpha1.NodeReadinessRule) bool {
	return len(r.types) == 0 || slices.ContainsFunc(rule.Spec.Conditions, func(c v1alpha1.ConditionRequirement) bool {
		return slices.Contains(r.types, c.Type)
	})
}

// overlap reports whether both rules can select the same node. The core decides: such rules would be in conflict if
// they had the same taint.
func overlap(a, b *v1alpha1.NodeReadinessRule) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	b.Spec.Taint = a.Spec.Taint
	a.Spec.DryRun, b.Spec.DryRun = false, false
	return slices.ContainsFunc(noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{a, b}).Rules(), func(rule *noderule.Rule) bool {
		return rule.Problem != nil && rule.Problem.Reason == v1alpha1.ReasonConflict
	})
}

// checkReported warns about requirements without a reporter. It skips files without reporters, and reporters whose
// configuration is not in the files.
func (r *Report) checkReported(reporters []reporter) {
	var reported []string
	for _, it := range reporters {
		if len(it.types) == 0 {
			return
		}
		reported = append(reported, it.types...)
	}
	if len(reporters) == 0 {
		return
	}
	for _, rule := range r.Rules {
		for i, requirement := range rule.Spec.Conditions {
			byKubernetes := requirement.Type == string(corev1.NodeNetworkUnavailable) || slices.Contains(kubeletTypes, requirement.Type)
			if slices.Contains(reported, requirement.Type) || byKubernetes || requirement.DefaultStatus == requirement.RequiredStatus {
				continue
			}
			r.add(Warning, r.places[rule.UID], fmt.Sprintf("spec.conditions[%d].type", i),
				fmt.Sprintf("no reporter in these files reports %s; they report %s. Without another reporter, nodes are held forever", requirement.Type, strings.Join(reported, ", ")),
				"compare the spelling, or add a reporter: docs/reference/reporter.md")
		}
	}
}
