package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// The examples have no errors, and only these warnings. Each example explains its warning.
func TestEveryExampleLints(t *testing.T) {
	const root = "../../../examples"
	allowed := []string{
		// The guides select by a well-known label, and use the kubelet's flag.
		"node-role.kubernetes.io/worker, which kubelets may not set",
	}
	directories := map[string][]lint.Input{}
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		directory := filepath.Dir(path)
		directories[directory] = append(directories[directory], lint.Input{File: path, Data: data})
		return err
	})
	if err != nil || len(directories) < 5 {
		t.Fatalf("%d directories: %v", len(directories), err)
	}
	rules := 0
	for directory, inputs := range directories {
		report, err := lint.Check(inputs, lint.DefaultNodes)
		if err != nil {
			t.Fatal(err)
		}
		rules += len(report.Rules)
		for _, line := range lines(report, lint.Warning) {
			if !slices.ContainsFunc(allowed, func(text string) bool { return strings.HasPrefix(line, "warning") && strings.Contains(line, text) }) {
				t.Errorf("%s: %s", directory, line)
			}
		}
	}
	if rules < 8 {
		t.Errorf("only %d rules", rules)
	}
}

// Rules in the README and the guides have no errors either, because users copy them.
func TestEveryRuleInTheDocsLints(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, page := range append(pages, "../../../README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
			manifest, _, _ := strings.Cut(block, "```")
			if !strings.Contains(manifest, "kind: NodeReadinessRule") && !strings.Contains(manifest, "kind: PodReadinessRule") {
				continue
			}
			rules++
			report, err := lint.Check([]lint.Input{{File: page, Data: []byte(manifest)}}, lint.DefaultNodes)
			if err != nil {
				t.Fatal(err)
			}
			if report.Count(lint.Error) > 0 {
				t.Errorf("%s:\n%s", page, strings.Join(lines(report, lint.Error), "\n"))
			}
		}
	}
	if rules == 0 {
		t.Error("no rule was found")
	}
}
