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

// agedRules are the rules of the examples that set maxAge, by file.
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

// late returns the findings of lint about the heartbeat of the chart's reporter for this rule.
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
	var found []string
	for _, finding := range report.Findings {
		if finding.Severity == lint.Warning && finding.Object == "DaemonSet/readygate-reporter-examples" {
			found = append(found, finding.Message)
		}
	}
	return found
}

// TestReporterHeartbeatsAreFrequentEnough: the default heartbeat of the chart's reporters fits the rules of the
// examples. Lint reports a heartbeat that is too infrequent.
func TestReporterHeartbeatsAreFrequentEnough(t *testing.T) {
	for file, rule := range agedRules(t) {
		t.Run(rule.Name, func(t *testing.T) {
			if found := late(t, file, rule, ""); len(found) > 0 {
				t.Errorf("the heartbeat of the chart's reporter is too infrequent:\n%s", strings.Join(found, "\n"))
			}
			if found := late(t, file, rule, "  heartbeatPeriod: 10h\n"); len(found) == 0 || !strings.Contains(found[0], "every 10h0m0s, but rule") {
				t.Errorf("for a heartbeat that is too infrequent lint reports only %q", found)
			}
		})
	}
}
