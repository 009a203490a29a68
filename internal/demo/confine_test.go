package demo_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/view"
)

const root = "../.."

// stateOn is what one rule says of a node with these labels.
func stateOn(rule *v1alpha1.NodeReadinessRule, labels map[string]string) readiness.State {
	book := view.NewBook([]*v1alpha1.NodeReadinessRule{rule})
	row := book.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}, time.Now())
	if len(row.Rules) == 0 {
		return readiness.NotSelected
	}
	return row.Rules[0].State
}

// labelsFor are labels that a rule of a scenario selects.
func labelsFor(rule *v1alpha1.NodeReadinessRule) map[string]string {
	labels := map[string]string{}
	for key, value := range rule.Spec.NodeSelector.MatchLabels {
		labels[key] = string(value)
	}
	for _, e := range rule.Spec.NodeSelector.MatchExpressions {
		labels[e.Key] = "any"
	}
	return labels
}

func everyRule(t *testing.T) []*v1alpha1.NodeReadinessRule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "scenarios", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var all []*v1alpha1.NodeReadinessRule
	for _, file := range files {
		rules, err := demo.RulesOf(root, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules...)
	}
	return all
}

func TestInAClusterOfOthersARuleReachesNodesOfTheDemoOnly(t *testing.T) {
	for _, rule := range everyRule(t) {
		labels := labelsFor(rule)
		if stateOn(rule, labels) == readiness.NotSelected {
			t.Fatalf("rule %s does not select %v: the test tests nothing", rule.Name, labels)
		}
		ours := rule.DeepCopy()
		demo.Confine(ours, true)
		if stateOn(ours, labels) != readiness.NotSelected {
			t.Errorf("rule %s selects a node of somebody else", ours.Name)
		}
		if got := demo.NodeLabels("worker", labels, true); stateOn(ours, got) == readiness.NotSelected {
			t.Errorf("rule %s does not select the demo's own node %v", ours.Name, got)
		}
		unmarked := demo.NodeLabels("worker", labels, true)
		delete(unmarked, demo.SimulatedLabel)
		if stateOn(ours, unmarked) != readiness.NotSelected {
			t.Errorf("rule %s selects a node that is not simulated: %v", ours.Name, unmarked)
		}
		if got := demo.NodeLabels("worker", labels, true); stateOn(rule, got) != readiness.NotSelected {
			t.Errorf("their rule %s selects the demo's node %v", rule.Name, got)
		}
		if !strings.HasPrefix(ours.Name, "demo-") || !strings.Contains(ours.Spec.Taint.Key, "/demo-") || !strings.HasPrefix(ours.Spec.Taint.Key, "readiness.k8s.io/") {
			t.Errorf("rule %s with the taint %s can be taken for somebody else's", ours.Name, ours.Spec.Taint.Key)
		}
	}
}

func TestOnItsOwnControlPlaneARuleIsAsPeopleWriteIt(t *testing.T) {
	for _, rule := range everyRule(t) {
		ours := rule.DeepCopy()
		demo.Confine(ours, false)
		if ours.Name != rule.Name || ours.Spec.Taint != rule.Spec.Taint || stateOn(ours, labelsFor(rule)) == readiness.NotSelected {
			t.Errorf("rule %s was changed: %+v", rule.Name, ours.Spec)
		}
	}
}

func TestInAClusterOfOthersARuleKnowsRulesAndDaemonSetsOfTheDemoOnly(t *testing.T) {
	everyone := &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "agent"}}
	rule := &v1alpha1.NodeReadinessRule{Spec: v1alpha1.NodeReadinessRuleSpec{
		DependsOn:   []string{"network", "storage"},
		Tolerations: &v1alpha1.DaemonSetTolerations{DaemonSetSelector: everyone},
	}}
	own := rule.DeepCopy()
	demo.Confine(own, false)
	if !slices.Equal(own.Spec.DependsOn, rule.Spec.DependsOn) || own.Spec.Tolerations.NamespaceSelector != nil {
		t.Errorf("on the demo's own control plane it was changed: %+v", own.Spec)
	}
	ours := rule.DeepCopy()
	demo.Confine(ours, true)
	if want := []string{"demo-network", "demo-storage"}; !slices.Equal(ours.Spec.DependsOn, want) {
		t.Errorf("it depends on %v, want %v", ours.Spec.DependsOn, want)
	}
	spaces := ours.Spec.Tolerations.NamespaceSelector
	if spaces == nil || spaces.MatchLabels[corev1.LabelMetadataName] != demo.Namespace || len(spaces.MatchLabels) != 1 {
		t.Errorf("it changes DaemonSets in %+v, want those in %s only", spaces, demo.Namespace)
	}
}

func TestAScenarioWhoseRuleIsNoneIsRefused(t *testing.T) {
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

func TestAnUnknownScenarioListsThoseThereAre(t *testing.T) {
	_, err := demo.RulesOf(root, "nope")
	var unknown *demo.UnknownScenarioError
	if !errors.As(err, &unknown) || len(unknown.Known) < 13 || !strings.Contains(err.Error(), "cni-guide") {
		t.Errorf("the error is %v", err)
	}
}
