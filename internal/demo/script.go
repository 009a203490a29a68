package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// script is a scenario with the rules that it applies, read before anything is started.
type script struct {
	*scenario.Scenario
	rules map[*scenario.Apply]*v1alpha1.NodeReadinessRule
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
	s := &script{Scenario: parsed, rules: map[*scenario.Apply]*v1alpha1.NodeReadinessRule{}}
	for i, step := range parsed.Steps {
		if step.Apply == nil {
			continue
		}
		if s.rules[step.Apply], err = readRule(root, step.Apply); err != nil {
			return nil, fmt.Errorf("%s: steps[%d].apply: %w", path, i, err)
		}
	}
	return s, nil
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
func readRule(root string, apply *scenario.Apply) (*v1alpha1.NodeReadinessRule, error) {
	data := []byte(apply.Manifest)
	if apply.File != "" {
		var err error
		if data, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(apply.File))); err != nil {
			return nil, err
		}
	}
	var rule v1alpha1.NodeReadinessRule
	if err := yaml.UnmarshalStrict(data, &rule); err != nil {
		return nil, fmt.Errorf("reading a rule: %w", err)
	}
	if rule.Kind != "NodeReadinessRule" || rule.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("the manifest is a %s %q, must be one NodeReadinessRule of %s", rule.APIVersion, rule.Kind, v1alpha1.GroupVersion)
	}
	return &rule, nil
}

// ruleNames are the names of all rules that the story applies.
func (s *script) ruleNames() []string {
	var all []string
	for _, rule := range s.rules {
		all = append(all, rule.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
