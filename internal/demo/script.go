package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// script is a scenario with its rules, read before the cluster is started.
type script struct {
	*scenario.Scenario
	rules    map[*scenario.Apply]client.Object // for nodes or for pods
	podRules []*podv1alpha1.PodReadinessRule   // the demo runs agents if there are any
}

// UnknownScenarioError is returned for the name of a scenario that does not exist.
type UnknownScenarioError struct {
	Name string
	// Known lists the existing scenarios with their titles.
	Known []string
}

// Error lists the existing scenarios.
func (e *UnknownScenarioError) Error() string {
	return fmt.Sprintf("scenario %q does not exist; the scenarios are:\n%s\ne.g. make demo SCENARIO=cni-guide; or set the path of your own file, e.g. SCENARIO=./my.yaml",
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
		if step.Apply != nil {
			if err := s.addRule(root, step.Apply); err != nil {
				return nil, fmt.Errorf("%s: steps[%d].apply: %w", path, i, err)
			}
		}
		if step.Delete != nil && s.ruleNamed(step.Delete.Rule) == nil {
			return nil, fmt.Errorf("%s: steps[%d].delete.rule is %q, must be the name of a rule that was applied before", path, i, step.Delete.Rule)
		}
	}
	return s, nil
}

// knownScenarios returns the scenarios of the repository with their titles.
func knownScenarios(root string) []string {
	paths, _ := filepath.Glob(filepath.Join(root, "scenarios", "*.yaml")) // the pattern is valid
	var known []string
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if s, err := readScript(root, name); err == nil {
			known = append(known, fmt.Sprintf("  %-18s %s (%s)", name, s.Title, about(s.Length())))
		}
	}
	return known
}

// rulesDecoder decodes rules, and rejects unknown fields.
var rulesDecoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme)))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// addRule reads the rule of a manifest, and returns an error if the demo does not support it.
func (s *script) addRule(root string, apply *scenario.Apply) error {
	data := []byte(apply.Manifest)
	if apply.File != "" {
		var err error
		if data, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(apply.File))); err != nil {
			return err
		}
	}
	obj, _, err := rulesDecoder.Decode(data, nil, nil)
	if err != nil {
		return fmt.Errorf("reading a rule: the manifest must be one NodeReadinessRule of %s, or one PodReadinessRule of %s: %w", v1alpha1.GroupVersion, podv1alpha1.GroupVersion, err)
	}
	rule, is := obj.(client.Object)
	if !is {
		return fmt.Errorf("the manifest is a %T, must be one rule", obj)
	}
	if other := s.ruleNamed(rule.GetName()); other != nil && reflect.TypeOf(other) != reflect.TypeOf(rule) {
		return fmt.Errorf("rule %s is the name of a NodeReadinessRule and of a PodReadinessRule, must be different names", rule.GetName())
	}
	s.rules[apply] = rule
	if podRule, is := rule.(*podv1alpha1.PodReadinessRule); is {
		s.podRules = append(s.podRules, podRule)
		return s.checkPodRule(podRule)
	}
	return nil
}

// checkPodRule returns an error for a pod rule that the demo does not support. Agents would check files, endpoints and the
// boot ID of this machine, and addresses of pods that do not exist.
func (s *script) checkPodRule(rule *podv1alpha1.PodReadinessRule) error {
	for i, component := range rule.Spec.Components {
		if component.PodCondition == nil && component.NodeCondition == nil {
			return fmt.Errorf("spec.components[%d], %s, has neither podCondition nor nodeCondition, must have one of them: the demo's pods have no network to probe", i, component.Name)
		}
	}
	if slices.ContainsFunc(s.Steps, func(step scenario.Step) bool { return step.Reboot != nil }) {
		return errors.New("a scenario with a PodReadinessRule must have no reboot step: its agents read the boot ID of this machine")
	}
	return nil
}

// ruleNamed returns a rule of this name that the scenario applies; nil if there is none.
func (s *script) ruleNamed(name string) client.Object {
	for _, rule := range s.rules {
		if rule.GetName() == name {
			return rule
		}
	}
	return nil
}

// requirements returns, by gate, the conditions that all rules of the scenario require before the gate may be opened.
func (s *script) requirements() map[string][]requirement {
	all := map[string][]requirement{}
	for _, rule := range s.podRules {
		gate := cmp.Or(rule.Spec.Gate, podv1alpha1.DefaultGate)
		for _, component := range rule.Spec.Components {
			must := cmp.Or(component.PodCondition, component.NodeCondition)
			all[gate] = append(all[gate], requirement{
				component: component.Name, condition: must.Type, status: cmp.Or(must.Status, corev1.ConditionTrue), ofNode: component.NodeCondition != nil,
			})
		}
	}
	return all
}
