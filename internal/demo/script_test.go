package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/demo"
)

const root = "../.."

func TestARuleForPodsThatTheDemoCannotPlayIsRejected(t *testing.T) {
	const rule = "apiVersion: readygate.dev/v1alpha1\nkind: PodReadinessRule\nmetadata: {name: a}\nspec: {components: [%s]}"
	const plays = "{name: policy, podCondition: {type: example.com/x}}"
	apply := func(manifest string) string { return fmt.Sprintf("- apply: {manifest: %q}\n", manifest) }
	file := filepath.Join(t.TempDir(), "a.yaml")
	for name, test := range map[string]struct{ steps, want string }{
		"a component that only a real pod answers": {
			apply(fmt.Sprintf(rule, plays+", {name: path, reach: {}}")), "steps[0].apply: spec.components[1], path, has neither podCondition nor nodeCondition",
		},
		"a reboot":           {apply(fmt.Sprintf(rule, plays)) + "- join: {name: w}\n- reboot: {nodes: [w]}\n", "steps[0].apply: a scenario with a PodReadinessRule must have no reboot"},
		"a field of nothing": {apply(fmt.Sprintf(rule, plays) + "\nsped: {}"), "sped"},
		"one name for two": {
			apply(fmt.Sprintf(rule, plays)) + apply("apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRule\nmetadata: {name: a}"),
			"steps[1].apply: rule a is the name of a NodeReadinessRule and of a PodReadinessRule",
		},
		"nothing wrong": {apply(fmt.Sprintf(rule, plays)), ""},
	} {
		if err := os.WriteFile(file, []byte("title: t\nabout: a\nsteps:\n"+test.steps), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := demo.PodRulesOf(root, file)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestAScenarioWithAnInvalidRuleIsRejected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	for manifest, want := range map[string]string{
		`"kind: Pod"`: "must be one NodeReadinessRule",
		`"apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRule\nspec: {taimt: x}"`: "taimt",
	} {
		text := "title: t\nabout: a\nsteps: [{apply: {manifest: " + manifest + "}}]"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := demo.RulesOf(root, file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "steps[0].apply") {
			t.Errorf("%s: %v, want %q", manifest, err, want)
		}
	}
}

func TestADeletedRuleMustHaveBeenApplied(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte("title: t\nabout: a\nsteps: [{delete: {rule: x}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.RulesOf(root, file); err == nil || !strings.Contains(err.Error(), `steps[0].delete.rule is "x", must be the name of a rule that was applied before`) {
		t.Errorf("the error is %v", err)
	}
}

func TestUnknownScenarioErrorListsTheAvailableOnes(t *testing.T) {
	_, err := demo.RulesOf(root, "nope")
	var unknown *demo.UnknownScenarioError
	if !errors.As(err, &unknown) || len(unknown.Known) < 14 || !strings.Contains(err.Error(), "cni-guide") {
		t.Errorf("the error is %v", err)
	}
}
