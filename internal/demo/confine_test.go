package demo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/plugin/view"
)

const root = "../.."

// stateOn is what one rule says of a node with these labels.
func stateOn(rule *v1alpha1.NodeReadinessRule, labels map[string]string) noderule.State {
	book := view.NewBook([]*v1alpha1.NodeReadinessRule{rule})
	row := book.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}, time.Now())
	if len(row.Rules) == 0 {
		return noderule.NotSelected
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
		if stateOn(rule, labels) == noderule.NotSelected {
			t.Fatalf("rule %s does not select %v: the test tests nothing", rule.Name, labels)
		}
		ours := rule.DeepCopy()
		demo.Confine(ours, true)
		if stateOn(ours, labels) != noderule.NotSelected {
			t.Errorf("rule %s selects a node of somebody else", ours.Name)
		}
		if got := demo.NodeLabels("worker", labels, true); stateOn(ours, got) == noderule.NotSelected {
			t.Errorf("rule %s does not select the demo's own node %v", ours.Name, got)
		}
		unmarked := demo.NodeLabels("worker", labels, true)
		delete(unmarked, demo.SimulatedLabel)
		if stateOn(ours, unmarked) != noderule.NotSelected {
			t.Errorf("rule %s selects a node that is not simulated: %v", ours.Name, unmarked)
		}
		if got := demo.NodeLabels("worker", labels, true); stateOn(rule, got) != noderule.NotSelected {
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
		if ours.Name != rule.Name || ours.Spec.Taint != rule.Spec.Taint || stateOn(ours, labelsFor(rule)) == noderule.NotSelected {
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

func TestInAClusterOfOthersARuleReachesPodsOfTheStoryOnly(t *testing.T) {
	rules, err := demo.PodRulesOf(root, "pod-network")
	if err != nil || len(rules) != 1 {
		t.Fatalf("%d rules: %v", len(rules), err)
	}
	rules[0].Spec.NamespaceSelector = nil // as somebody may write it
	theirs := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ours := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: "web"}}
	for confined, name := range map[bool]string{false: "pod-network", true: "demo-pod-network"} {
		rule := rules[0].DeepCopy()
		demo.Confine(rule, confined)
		compiled := podrule.NewRule(rule)
		if compiled.Selects(theirs, nil) == confined || !compiled.Selects(ours, nil) || rule.Name != name {
			t.Errorf("confined %v: rule %s selects theirs: %v, ours: %v", confined, rule.Name, compiled.Selects(theirs, nil), compiled.Selects(ours, nil))
		}
		if rule.Labels["readygate.dev/demo"] != "true" {
			t.Errorf("confined %v: the rule cannot be found by %v", confined, rule.Labels)
		}
	}
}

func TestWhereThereAreRulesForPodsAStoryWithItsOwnIsNotPlayed(t *testing.T) {
	for _, test := range []struct {
		story    string
		podRules int
		want     string
	}{
		{"pod-network", 0, ""}, {"cni-guide", 3, ""}, {"cni-guide", -1, ""},
		{"pod-network", 3, "there are 3 rules for pods"},
		{"pod-network", -1, "does not know PodReadinessRule"},
	} {
		err := demo.Suits(root, test.story, test.podRules)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "unset KUBECONFIG")) {
			t.Errorf("%s with %d rules: %v, want %q", test.story, test.podRules, err, test.want)
		}
	}
}

func TestARuleForPodsThatTheDemoCannotPlayIsRefused(t *testing.T) {
	const rule = "apiVersion: readygate.dev/v1alpha1\nkind: PodReadinessRule\nmetadata: {name: a}\nspec: {components: [%s]}"
	const plays = "{name: policy, podCondition: {type: example.com/x}}"
	apply := func(manifest string) string { return fmt.Sprintf("- apply: {manifest: %q}\n", manifest) }
	file := filepath.Join(t.TempDir(), "a.yaml")
	for name, test := range map[string]struct{ steps, want string }{
		"a component that only a real pod answers": {
			apply(fmt.Sprintf(rule, plays+", {name: path, reach: {}}")), "steps[0].apply: spec.components[1], path, has neither podCondition nor nodeCondition",
		},
		"a reboot":           {apply(fmt.Sprintf(rule, plays)) + "- join: {name: w}\n- reboot: {nodes: [w]}\n", "steps[0].apply: a story with a PodReadinessRule must have no reboot"},
		"a field of nothing": {apply(fmt.Sprintf(rule, plays) + "\nsped: {}"), "sped"},
		"one name for two": {
			apply(fmt.Sprintf(rule, plays)) + apply("apiVersion: readiness.node.x-k8s.io/v1alpha1\nkind: NodeReadinessRule\nmetadata: {name: a}"),
			"steps[1].apply: rule a is for nodes and for pods",
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
	if !errors.As(err, &unknown) || len(unknown.Known) < 14 || !strings.Contains(err.Error(), "cni-guide") {
		t.Errorf("the error is %v", err)
	}
}
