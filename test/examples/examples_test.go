package examples_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/readygate/readygate/internal/reporter"
)

// Every example can be applied unchanged and without a warning, and be deleted.
func TestEveryExampleApplies(t *testing.T) {
	c := cluster(t)
	k := c.Kubectl(t)
	k.Strict = true
	byDir := map[string][]string{}
	for file := range manifests(t, dir) {
		byDir[filepath.Dir(file)] = append(byDir[filepath.Dir(file)], file)
	}
	if len(byDir) < 9 {
		t.Fatalf("found only %d examples", len(byDir))
	}
	for _, example := range slices.Sorted(maps.Keys(byDir)) {
		t.Run(example, func(t *testing.T) {
			files := byDir[example]
			slices.Sort(files)
			var flags []string
			for _, file := range files {
				flags = append(flags, "-f", filepath.Join(dir, file))
			}
			t.Cleanup(func() { _, _ = k.Try(t.Context(), append([]string{"delete", "--ignore-not-found"}, flags...)...) })
			k.Run(t, append([]string{"apply"}, flags...)...)
			for _, file := range files {
				for _, applied := range manifests(t, filepath.Dir(filepath.Join(dir, file)))[filepath.Base(file)] {
					c.WantStored(t, applied, metav1.NamespaceDefault)
				}
			}
			for _, rule := range ofKind(t, example, "NodeReadinessRule") {
				k.Run(t, "wait", "--timeout=90s", "--for=condition=Accepted", "nrr/"+rule.GetName())
			}
			for _, rule := range ofKind(t, example, "PodReadinessRule") {
				k.Run(t, "wait", "--timeout=90s", "--for=condition=Accepted", "prr/"+rule.GetName())
			}
			k.Run(t, append([]string{"delete"}, flags...)...)
		})
	}
}

// ofKind returns the objects of a kind in an example, without those in subdirectories.
func ofKind(t *testing.T, example, kind string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for file, objects := range manifests(t, filepath.Join(dir, example)) {
		for _, obj := range objects {
			if filepath.Dir(file) == "." && obj.GetKind() == kind {
				found = append(found, obj)
			}
		}
	}
	return found
}

// The reporter of an example reports what the rules require, its policy allows that, and its configuration is valid.
func TestTheExamplesFitTogether(t *testing.T) {
	examples := map[string]bool{}
	for file := range manifests(t, dir) {
		examples[filepath.Dir(file)] = true
	}
	for example := range examples {
		rules := ofKind(t, example, "NodeReadinessRule")
		if len(rules) == 0 || example == "node-problem-detector" { // its reporter is node-problem-detector
			continue
		}
		t.Run(example, func(t *testing.T) {
			reported := reportedTypes(t, strings.TrimSuffix(example, "/optional"))
			for _, rule := range rules {
				if required := requiredTypes(t, rule); !slices.Equal(required, reported) {
					t.Errorf("rule %s requires %v, the reporter reports %v", rule.GetName(), required, reported)
				}
			}
			for _, policy := range ofKind(t, example, "ValidatingAdmissionPolicy") {
				if !strings.HasPrefix(policy.GetName(), "readygate-reporter-") {
					continue
				}
				if allowed := allowedTypes(t, policy); allowed != `["`+strings.Join(reported, `", "`)+`"]` {
					t.Errorf("the policy allows %s, the reporter reports %v", allowed, reported)
				}
			}
		})
	}
}

func requiredTypes(t *testing.T, rule *unstructured.Unstructured) []string {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(rule.Object, "spec", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, condition := range conditions {
		types = append(types, condition.(map[string]any)["type"].(string))
	}
	slices.Sort(types)
	return types
}

func allowedTypes(t *testing.T, policy *unstructured.Unstructured) string {
	t.Helper()
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range variables {
		if v := variable.(map[string]any); v["name"] == "types" {
			return v["expression"].(string)
		}
	}
	return ""
}

// reportedTypes returns the condition types of the example's reporter, from its configuration file or its variables.
func reportedTypes(t *testing.T, example string) []string {
	t.Helper()
	var types []string
	for _, obj := range ofKind(t, example, "ConfigMap") {
		text, _, _ := unstructured.NestedString(obj.Object, "data", "config.yaml")
		config, err := reporter.ParseConfig([]byte(text))
		if err != nil {
			t.Fatalf("ConfigMap %s: %v", obj.GetName(), err)
		}
		for _, check := range config.Checks {
			types = append(types, check.ConditionType)
		}
	}
	for _, file := range []string{"cni-reporter-ds.yaml", "cni-patcher-sidecar.yaml"} {
		if value := variableIn(t, filepath.Join(dir, example, file), reporter.ConditionType); value != "" {
			types = append(types, value)
		}
	}
	slices.Sort(types)
	return types
}
