package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// kubeletTypes are conditions that the kubelet writes as soon as it runs. NetworkUnavailable is
// none of them: some network plugins and route controllers of clouds write it.
var kubeletTypes = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}

// checkTogether looks at the rules that the API server would take, side by side.
func (r *Report) checkTogether() {
	r.checkNames()
	told := map[string]bool{}
	book := noderule.NewRulebook(r.Rules)
	for _, rule := range book.Rules() {
		at := r.places[rule.UID]
		switch {
		case rule.Problem != nil && rule.Problem.Reason == v1alpha1.ReasonConflict:
			r.add(Error, at, "spec.taint", "applied in this order, "+rule.Problem.Message, "")
		case rule.Problem != nil:
			r.add(Error, at, "spec", rule.Problem.Message, "")
		case rule.Unordered != "":
			r.add(Error, at, "spec.dependsOn", rule.Unordered, "")
		case rule.Rival != nil:
			r.add(Info, at, "spec.dryRun", fmt.Sprintf("only previews; enforced, it would be in conflict with rule %q, which manages the same taint on nodes that this rule can select too", rule.Rival.Name), "")
		}
		if rule.Problem == nil || rule.Problem.Reason == v1alpha1.ReasonConflict {
			r.checkHurts(at, rule)
			r.checkDependencies(at, book, rule)
			r.checkAges(at, rule)
			r.checkAutoscalers(at, rule, told)
		}
	}
}

// checkNames looks for two rules of one name that are not the same: a rule cannot be changed.
func (r *Report) checkNames() {
	byName := map[string]*v1alpha1.NodeReadinessRule{}
	var once []*v1alpha1.NodeReadinessRule
	for _, rule := range r.Rules {
		first, twice := byName[rule.Name]
		if !twice || rule.Name == "" {
			byName[rule.Name] = rule
			once = append(once, rule)
			continue
		}
		if !reflect.DeepEqual(first.Spec, rule.Spec) {
			r.add(Error, r.places[rule.UID], "metadata.name", "another rule has this name, in "+r.places[first.UID].file+": one would take the place of the other, or be refused", "give one of them another name, or apply only one")
		}
	}
	r.Rules = once
}

// checkHurts warns of what the API server takes and people regret.
func (r *Report) checkHurts(at document, rule *noderule.Rule) {
	if later := admission.LabelsSetLater(rule); len(later) > 0 {
		r.add(Warning, at, "spec.nodeSelector",
			fmt.Sprintf("selects by %s, which no kubelet may set on its own node: nodes are created without the taint, and pods can be early until somebody sets the label", strings.Join(later, ", ")),
			fmt.Sprintf("select by a label that kubelets may set (--node-labels=example.com/pool=workers), or start them with --register-with-taints=%s", rule.Taint.ToString()))
	}
	switch rule.Taint.Effect {
	case corev1.TaintEffectNoExecute:
		r.checkEvictions(at, rule)
	case corev1.TaintEffectPreferNoSchedule:
		r.add(Warning, at, "spec.taint.effect", "PreferNoSchedule only asks the scheduler: pods land on a held node when there is no other place", "use NoSchedule")
	}
	if !rule.Bootstrap {
		return
	}
	for i, requirement := range rule.Requirements {
		if slices.Contains(kubeletTypes, requirement.Type) {
			r.add(Warning, at, fmt.Sprintf("spec.conditions[%d].type", i),
				requirement.Type+" is written by the kubelet as soon as it runs, before any network or driver works: a bootstrap-only rule is done with the node at that moment",
				"require a condition that your component or a reporter writes, e.g. example.com/NetworkReady")
		}
	}
}

// checkAutoscalers says once a prefix which autoscaler has to be told of it.
func (r *Report) checkAutoscalers(at document, rule *noderule.Rule, told map[string]bool) {
	prefix, _, _ := strings.Cut(rule.Taint.Key, "/")
	if told[prefix] || rule.Taint.Effect == corev1.TaintEffectPreferNoSchedule {
		return
	}
	told[prefix] = true
	message := "Cluster Autoscaler does not know taints of " + prefix + " unless it is told, and may add nodes without end or none at all (Karpenter knows them since 1.13)"
	do := "if you run it: --startup-taint-prefix=" + prefix + "/ (1.36 or newer) or --startup-taint=" + rule.Taint.Key + "; see docs/autoscalers.md"
	if prefix != "readiness.k8s.io" {
		message = "Karpenter does not know taints of " + prefix + " unless its NodePools name them (Cluster Autoscaler does)"
		do = "if you run it: put the taint into spec.template.spec.startupTaints of the NodePools; see docs/autoscalers.md"
	}
	r.add(Info, at, "spec.taint.key", message, do)
}
