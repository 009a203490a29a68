package chart_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/testenv"
)

// agedRules are the rules of the examples that limit the age of a condition, by their file.
func agedRules(t *testing.T) map[string]*v1alpha1.NodeReadinessRule {
	t.Helper()
	found := map[string]*v1alpha1.NodeReadinessRule{}
	err := filepath.WalkDir(filepath.Join(testenv.Root(), "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "-rule.yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "kind: NodeReadinessRule") {
			return err
		}
		rule := &v1alpha1.NodeReadinessRule{}
		if err := yaml.UnmarshalStrict(data, rule); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, condition := range rule.Spec.Conditions {
			if condition.MaxAge != nil {
				found[path] = rule
			}
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d rules of the examples have maxAge: %v", len(found), err)
	}
	return found
}

// late is what lint says of the heartbeats of the chart's reporter for this rule.
func late(t *testing.T, file string, rule *v1alpha1.NodeReadinessRule, heartbeat string) []string {
	t.Helper()
	var values strings.Builder
	values.WriteString("reporters:\n- name: examples\n  hostNetwork: true\n" + heartbeat + "  checks:\n")
	for _, condition := range rule.Spec.Conditions {
		fmt.Fprintf(&values, "  - {conditionType: %s, tcp: {address: \"localhost:8765\"}}\n", condition.Type)
	}
	rendered, err := template(t, "helm", values.String())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report, err := lint.Check([]lint.Input{{File: file, Data: data}, {File: "rendered.yaml", Data: []byte(rendered)}}, lint.DefaultNodes)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, finding := range report.Findings {
		if finding.Severity == lint.Warning && finding.Object == "DaemonSet/readygate-reporter-examples" {
			said = append(said, finding.Message)
		}
	}
	return said
}

// TestReporterHeartbeatsAreFrequentEnough for the rules of the examples as they are, with the heartbeat that a
// reporter has when the values name none. Where it is too seldom, lint says so.
func TestReporterHeartbeatsAreFrequentEnough(t *testing.T) {
	for file, rule := range agedRules(t) {
		t.Run(rule.Name, func(t *testing.T) {
			if said := late(t, file, rule, ""); len(said) > 0 {
				t.Errorf("the heartbeat of the chart's reporter does not fit:\n%s", strings.Join(said, "\n"))
			}
			if said := late(t, file, rule, "  heartbeatPeriod: 10h\n"); len(said) == 0 || !strings.Contains(said[0], "every 10h0m0s, and rule") {
				t.Errorf("of a heartbeat that is too seldom lint says only %q", said)
			}
		})
	}
}
