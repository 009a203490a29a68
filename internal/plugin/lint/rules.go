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
	"github.com/readygate/readygate/internal/core/podrule"
)

// kubeletTypes are conditions that the kubelet writes as soon as it runs. NetworkUnavailable is not one of them: some
// network plugins and cloud route controllers write it.
var kubeletTypes = []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}

// checkTogether checks the accepted NodeReadinessRules against each other.
func (r *Report) checkTogether() {
	r.checkNames()
	named := map[string]bool{}
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
			r.add(Info, at, "spec.dryRun", fmt.Sprintf("is true; if enforced, this rule would conflict with rule %q, which manages the same taint on nodes that this rule can also select", rule.Rival.Name), "")
		}
		if rule.Problem == nil || rule.Problem.Reason == v1alpha1.ReasonConflict {
			r.checkHurts(at, rule)
			if unknown := book.UnknownDependencies(rule); len(unknown) > 0 {
				r.add(Warning, at, "spec.dependsOn", fmt.Sprintf("no rule in these files is named %s: the rule does not wait for it unless it exists in the cluster", strings.Join(unknown, " or ")),
					"compare the spelling, or lint the rules together")
			}
			r.checkAges(at, rule)
			r.checkAutoscalers(at, rule, named)
		}
	}
}

// checkNames finds different rules with the same name: most fields of a rule are immutable.
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
			r.add(Error, r.places[rule.UID], "metadata.name", "another rule has this name, in "+r.places[first.UID].file+": one would replace the other, or be rejected", "rename one of them, or apply only one")
		}
	}
	r.Rules = once
}

// checkHurts warns about rules that the API server accepts but that are likely to cause problems.
func (r *Report) checkHurts(at document, rule *noderule.Rule) {
	if later := admission.LabelsSetLater(rule); len(later) > 0 {
		r.add(Warning, at, "spec.nodeSelector",
			fmt.Sprintf("selects by %s, which kubelets may not set on their own nodes: nodes are created without the taint, and pods can be scheduled there before the label is set", strings.Join(later, ", ")),
			fmt.Sprintf("select by a label that kubelets may set (--node-labels=example.com/pool=workers), or start the kubelets with --register-with-taints=%s", rule.Taint.ToString()))
	}
	switch rule.Taint.Effect {
	case corev1.TaintEffectNoExecute:
		r.checkEvictions(at, rule)
	case corev1.TaintEffectPreferNoSchedule:
		r.add(Warning, at, "spec.taint.effect", "PreferNoSchedule is only a preference: the scheduler places pods on a held node if no other node fits", "use NoSchedule")
	}
	if !rule.Bootstrap {
		return
	}
	for i, requirement := range rule.Requirements {
		if slices.Contains(kubeletTypes, requirement.Type) {
			r.add(Warning, at, fmt.Sprintf("spec.conditions[%d].type", i),
				requirement.Type+" is written by the kubelet as soon as it runs, before any network or driver works: a bootstrap-only rule completes at that moment",
				"require a condition that your component or a reporter writes, e.g. example.com/NetworkReady")
		}
	}
}

// checkAutoscalers names, once per taint prefix, the autoscaler that must be configured for it.
func (r *Report) checkAutoscalers(at document, rule *noderule.Rule, named map[string]bool) {
	prefix, _, _ := strings.Cut(rule.Taint.Key, "/")
	if named[prefix] || rule.Taint.Effect == corev1.TaintEffectPreferNoSchedule {
		return
	}
	named[prefix] = true
	message := "Cluster Autoscaler does not treat taints of " + prefix + " as startup taints by default, and may add too many nodes or none (Karpenter supports them since 1.13)"
	do := "if you run it: --startup-taint-prefix=" + prefix + "/ (1.36 or newer) or --startup-taint=" + rule.Taint.Key + "; see docs/how-to/autoscalers.md"
	if prefix != "readiness.k8s.io" {
		message = "Karpenter does not treat taints of " + prefix + " as startup taints unless its NodePools list them (Cluster Autoscaler does)"
		do = "if you run it: add the taint to spec.template.spec.startupTaints of the NodePools; see docs/how-to/autoscalers.md"
	}
	r.add(Info, at, "spec.taint.key", message, do)
}

// checkPodRules checks the accepted PodReadinessRules.
func (r *Report) checkPodRules() {
	first := map[string]int{}
	for i, rule := range r.PodRules {
		at := r.podPlaces[i]
		if before, twice := first[rule.Name]; twice && rule.Name != "" && !reflect.DeepEqual(r.PodRules[before].Spec, rule.Spec) {
			r.add(Error, at, "metadata.name", "another rule has this name, in "+r.podPlaces[before].file+": one would replace the other, or be rejected", "rename one of them, or apply only one")
			continue
		}
		first[rule.Name] = i
		if compiled := podrule.NewRule(rule); compiled.Invalid != nil {
			r.add(Error, at, "spec", compiled.Invalid.Error(), "")
		}
		for j := range rule.Spec.Components {
			file := rule.Spec.Components[j].File
			if file != nil && !strings.Contains(file.Path+file.Contains, "{uid}") && !strings.Contains(file.Path+file.Contains, "{ip") {
				r.add(Warning, at, fmt.Sprintf("spec.components[%d].file", j), "identifies the pod by its name only: the file of an earlier pod with this name would make the next pod ready", "set contains to a value that differs per pod, e.g. '{ip}/32', or use {uid} in path")
			}
		}
		everywhere := rule.Spec.NamespaceSelector == nil && rule.Spec.PodSelector == nil
		if everywhere {
			r.add(Info, at, "spec", "selects the pods of all namespaces except "+strings.Join(podrule.Reserved, " and "), "to start with a few namespaces, add a namespaceSelector")
		}
		switch {
		case rule.Spec.DeadlineSeconds != nil:
		case rule.Spec.StartHold && everywhere:
			r.add(Warning, at, "spec.deadlineSeconds", "is absent, with startHold and for all pods: if a component never becomes ready, no pod outside "+strings.Join(podrule.Reserved, " and ")+" starts, and no event is emitted", "set it, e.g. 120; or start with a namespaceSelector")
		default:
			r.add(Info, at, "spec.deadlineSeconds", "is absent: a pod whose component never becomes ready waits forever, and no event is emitted", "set it, e.g. 120; with onDeadline: Report the gate stays closed")
		}
	}
	r.checkSharedGates()
}

// checkSharedGates adds findings for rules with the same gate. A latch opens with its gate, independent of which rule
// sets startHold.
func (r *Report) checkSharedGates() {
	first := map[string]*podrule.Rule{}
	for i, obj := range r.PodRules {
		rule := podrule.NewRule(obj)
		before, shared := first[rule.Gate]
		switch {
		case !shared:
			first[rule.Gate] = rule
		case before.Name == rule.Name:
		case before.StartHold && needsStart(rule), rule.StartHold && needsStart(before):
			r.add(Warning, r.podPlaces[i], "spec.gate", "is also the gate of rule "+before.Name+", and one rule sets startHold while the other requires ContainersReady or Initialized: on pods that both rules select, the gate never opens", "set another gate in one of them")
		default:
			r.add(Info, r.podPlaces[i], "spec.gate", "is also the gate of rule "+before.Name+": on pods that both rules select, the gate opens when the components of both are ready", "if this is not intended, set another gate in one of them")
		}
	}
}

// needsStart reports whether a component of the rule can become ready only after containers have started.
func needsStart(rule *podrule.Rule) bool {
	return slices.ContainsFunc(rule.Components, func(c podrule.Component) bool { return c.NeedsStart() })
}
