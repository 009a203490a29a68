package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// checkWorkloads compares the rules with what reports in the same files: who must run on a
// held node has to tolerate its taint, and every requirement needs somebody who reports it.
func (r *Report) checkWorkloads(documents []document) {
	reporters := reportersIn(documents)
	for _, it := range reporters {
		for _, rule := range r.Rules {
			r.checkTolerates(it, rule)
		}
	}
	r.checkReported(reporters)
}

func (r *Report) checkTolerates(it reporter, rule *v1alpha1.NodeReadinessRule) {
	reports := len(it.types) == 0 // it may report anything
	for _, requirement := range rule.Spec.Conditions {
		reports = reports || slices.Contains(it.types, requirement.Type)
	}
	taint := corev1.Taint{Key: rule.Spec.Taint.Key, Value: rule.Spec.Taint.Value, Effect: rule.Spec.Taint.Effect}
	if !reports || taint.Effect == corev1.TaintEffectPreferNoSchedule || tolerates(it.pod, taint) {
		return
	}
	r.add(Warning, it.document, strings.Join(append(slices.Clone(podSpecs[it.GetKind()]), "tolerations"), "."),
		fmt.Sprintf("reports what rule %q waits for and does not tolerate its taint %s: it never starts on a held node, and the node stays held", rule.Name, taint.ToString()),
		fmt.Sprintf("add the toleration {key: %s, operator: Exists}, or {operator: Exists} for every taint", taint.Key))
}

func tolerates(pod corev1.PodSpec, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && t.ToleratesTaint(logr.Discard(), &taint, false)
	})
}

// checkReported looks for requirements that nobody reports. Files without reporters say
// nothing about that, nor do reporters that have their configuration elsewhere.
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
			if slices.Contains(reported, requirement.Type) || slices.Contains(kubernetesTypes, requirement.Type) || requirement.DefaultStatus == requirement.RequiredStatus {
				continue
			}
			r.add(Warning, r.places[rule.UID], fmt.Sprintf("spec.conditions[%d].type", i),
				fmt.Sprintf("nothing in these files reports %s; they report %s. If nothing else does, nodes are held for ever", requirement.Type, strings.Join(reported, ", ")),
				"compare the spelling, or add a reporter: docs/reporter.md")
		}
	}
}
