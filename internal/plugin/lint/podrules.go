package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// podRule judges one rule of pods as the API server does, and keeps it if that would take it.
func (r *Report) podRule(d document) error {
	definition, err := podRuleDefinition()
	if err != nil {
		return fmt.Errorf("reading the definition of rules of pods: %w", err)
	}
	rule := &podv1alpha1.PodReadinessRule{}
	if !r.judge(definition, d, podv1alpha1.GroupVersion) || !r.read(d, rule) {
		return nil
	}
	r.PodRules, r.podPlaces = append(r.PodRules, rule), append(r.podPlaces, d)
	return nil
}

// checkPodRules looks at the rules of pods that the API server would take.
func (r *Report) checkPodRules() {
	first := map[string]int{}
	for i, rule := range r.PodRules {
		at := r.podPlaces[i]
		if before, twice := first[rule.Name]; twice && rule.Name != "" && !reflect.DeepEqual(r.PodRules[before].Spec, rule.Spec) {
			r.add(Error, at, "metadata.name", "another rule has this name, in "+r.podPlaces[before].file+": one would take the place of the other, or be refused", "give one of them another name, or apply only one")
			continue
		}
		first[rule.Name] = i
		if compiled := podrule.NewRule(rule); compiled.Invalid != nil {
			r.add(Error, at, "spec", compiled.Invalid.Error(), "")
		}
		for j := range rule.Spec.Components {
			r.checkComponent(at, rule, j)
		}
		if rule.Spec.NamespaceSelector == nil && rule.Spec.PodSelector == nil {
			r.add(Info, at, "spec", "selects the pods of all namespaces but "+strings.Join(podrule.Reserved, " and "), "add a namespaceSelector to begin with a few")
		}
		switch everywhere := rule.Spec.NamespaceSelector == nil && rule.Spec.PodSelector == nil; {
		case rule.Spec.DeadlineSeconds != nil:
		case rule.Spec.StartHold && everywhere:
			r.add(Warning, at, "spec.deadlineSeconds", "is absent, with startHold and for all pods: if a component never says yes, no pod outside of "+strings.Join(podrule.Reserved, " and ")+" starts, and no event tells of it", "set it, e.g. 120; or begin with a namespaceSelector")
		default:
			r.add(Info, at, "spec.deadlineSeconds", "is absent: a pod whose component never says yes waits for ever, and no event tells of it", "set it, e.g. 120; with onDeadline: Report it only tells")
		}
	}
	r.checkSharedGates()
}

// checkSharedGates tells of rules that have a gate together. A latch opens with its gate, whichever of the
// rules holds the start.
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
			r.add(Warning, r.podPlaces[i], "spec.gate", "is that of rule "+before.Name+", too, and one of them has startHold while the other one waits for ContainersReady or Initialized: of pods that both select, it never opens", "give one of them another gate")
		default:
			r.add(Info, r.podPlaces[i], "spec.gate", "is that of rule "+before.Name+", too: of pods that both select, it opens when the components of both have said yes", "give one of them another gate if that is not meant")
		}
	}
}

// needsStart says that a component of the rule says yes only when containers have started.
func needsStart(rule *podrule.Rule) bool {
	return slices.ContainsFunc(rule.Components, func(c podrule.Component) bool { return c.NeedsStart() })
}

// checkComponent warns of a component that cannot say yes, or says it too easily.
func (r *Report) checkComponent(at document, rule *podv1alpha1.PodReadinessRule, i int) {
	file := rule.Spec.Components[i].File
	if file == nil {
		return
	}
	if said := file.Path + file.Contains; !strings.Contains(said, "{uid}") && !strings.Contains(said, "{ip") {
		r.add(Warning, at, fmt.Sprintf("spec.components[%d].file", i), "names the pod by its name only: the file of an earlier pod of this name would say yes for the next one", "set contains to what differs, e.g. '{ip}/32', or use {uid} in path")
	}
}
