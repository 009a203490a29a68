package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// script is a scenario with the rules that it applies, read before anything is started.
type script struct {
	*scenario.Scenario
	rules map[*scenario.Apply]client.Object // for nodes or for pods
}

// UnknownScenarioError says that there is no such scenario, and which there are.
type UnknownScenarioError struct {
	Name string
	// Known are those that there are, each with its title.
	Known []string
}

// Error lists them.
func (e *UnknownScenarioError) Error() string {
	return fmt.Sprintf("there is no scenario %q; there are:\n%s\ne.g. make demo SCENARIO=cni-guide; or give the path of a file of your own, e.g. SCENARIO=./my.yaml",
		e.Name, strings.Join(e.Known, "\n"))
}

// readScript reads a scenario by its name, or by the path of its file.
func readScript(root, name string) (*script, error) {
	path := filepath.Join(root, "scenarios", name+".yaml")
	if strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".yaml") {
		path = name
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &UnknownScenarioError{Name: name, Known: knownScenarios(root)}
	}
	if err != nil {
		return nil, err
	}
	parsed, err := scenario.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := &script{Scenario: parsed, rules: map[*scenario.Apply]client.Object{}}
	for i, step := range parsed.Steps {
		if step.Apply == nil {
			continue
		}
		rule, err := readRule(root, step.Apply)
		if err == nil {
			err = s.agrees(rule)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: steps[%d].apply: %w", path, i, err)
		}
		s.rules[step.Apply] = rule
	}
	return s, nil
}

// agrees says what keeps a rule from being part of the scenario.
func (s *script) agrees(rule client.Object) error {
	if other := s.ruleNamed(rule.GetName()); other != nil && isPodRule(other) != isPodRule(rule) {
		return fmt.Errorf("rule %s is for nodes and for pods, must have a name of its own for each", rule.GetName())
	}
	if isPodRule(rule) && slices.ContainsFunc(s.Steps, func(step scenario.Step) bool { return step.Reboot != nil }) {
		return errors.New("a scenario with a PodReadinessRule must have no reboot: its agents run on this machine, and know of no other boot")
	}
	return nil
}

// knownScenarios are the scenarios of the repository, each with its title.
func knownScenarios(root string) []string {
	paths, _ := filepath.Glob(filepath.Join(root, "scenarios", "*.yaml")) // the pattern is right
	var known []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if s, err := readScript(root, name); err == nil {
			known = append(known, fmt.Sprintf("  %-18s %s (%s)", name, s.Title, about(s.Length())))
		}
	}
	return known
}

// readRule reads the one rule of a manifest.
func readRule(root string, apply *scenario.Apply) (client.Object, error) {
	data := []byte(apply.Manifest)
	if apply.File != "" {
		var err error
		if data, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(apply.File))); err != nil {
			return nil, err
		}
	}
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("reading a rule: %w", err)
	}
	switch kind {
	case metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeReadinessRule"}:
		return strictly(data, &v1alpha1.NodeReadinessRule{})
	case metav1.TypeMeta{APIVersion: podv1alpha1.GroupVersion.String(), Kind: "PodReadinessRule"}:
		rule := &podv1alpha1.PodReadinessRule{}
		if _, err := strictly(data, rule); err != nil {
			return nil, err
		}
		return rule, playable(rule)
	}
	return nil, fmt.Errorf("the manifest is a %s %q, must be one NodeReadinessRule of %s, or one PodReadinessRule of %s",
		kind.APIVersion, kind.Kind, v1alpha1.GroupVersion, podv1alpha1.GroupVersion)
}

// strictly reads a rule that has no unknown fields.
func strictly(data []byte, rule client.Object) (client.Object, error) {
	if err := yaml.UnmarshalStrict(data, rule); err != nil {
		return nil, fmt.Errorf("reading a rule: %w", err)
	}
	return rule, nil
}

// playable says that the demo cannot play a component of the rule. Agents would look for files and
// endpoints on this machine, and for pods that are not there.
func playable(rule *podv1alpha1.PodReadinessRule) error {
	for i, component := range rule.Spec.Components {
		if component.PodCondition == nil && component.NodeCondition == nil {
			return fmt.Errorf("spec.components[%d], %s, has neither podCondition nor nodeCondition, must have one of them: the demo's pods have no network to ask about", i, component.Name)
		}
	}
	return nil
}

// ruleNamed is a rule of this name that the scenario applies; nil if there is none.
func (s *script) ruleNamed(name string) client.Object {
	for _, rule := range s.rules {
		if rule.GetName() == name {
			return rule
		}
	}
	return nil
}

// gatesPods says whether the scenario has rules for pods, and so agents.
func (s *script) gatesPods() bool {
	for _, rule := range s.rules {
		if isPodRule(rule) {
			return true
		}
	}
	return false
}

// wants are what components say before a gate may be opened, by gate: those of all rules that the
// scenario has for it.
func (s *script) requirements() map[string][]requirement {
	all := map[string][]requirement{}
	for _, obj := range s.rules {
		rule, is := obj.(*podv1alpha1.PodReadinessRule)
		if !is {
			continue
		}
		gate := cmp.Or(rule.Spec.Gate, podv1alpha1.DefaultGate)
		for _, component := range rule.Spec.Components {
			says := cmp.Or(component.PodCondition, component.NodeCondition)
			all[gate] = append(all[gate], requirement{
				component: component.Name, condition: says.Type, status: cmp.Or(says.Status, corev1.ConditionTrue), ofNode: component.NodeCondition != nil,
			})
		}
	}
	return all
}

func isPodRule(rule client.Object) bool {
	_, is := rule.(*podv1alpha1.PodReadinessRule)
	return is
}
