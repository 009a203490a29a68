package lint_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// asJSON is a manifest on one line.
func asJSON(t *testing.T, manifest string) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// item returns a manifest as an item of a list, without the lines that start with these words.
func item(manifest string, without ...string) string {
	var kept []string
	for line := range strings.SplitSeq(strings.TrimSpace(manifest), "\n") {
		drop := false
		for _, word := range without {
			drop = drop || strings.HasPrefix(line, word)
		}
		if !drop {
			kept = append(kept, line)
		}
	}
	return "- " + strings.Join(kept, "\n  ") + "\n"
}

func TestEveryJSONObjectOfAFileIsRead(t *testing.T) {
	good, bad := asJSON(t, rule()), asJSON(t, rule("name: network", "name: second", "NoSchedule", "NoScheduling"))
	const want = "error | a.yaml | NodeReadinessRule/second | spec.taint.effect"
	for name, text := range map[string]string{
		"a line each":         good + "\n" + bad + "\n",
		"without a space":     good + bad,
		"between separators":  "---\n" + good + "\n---\n" + good + "\n" + bad,
		"indented with tabs":  good + strings.ReplaceAll(bad, ",", ",\n\t"),
		"behind a good third": good + good + bad,
	} {
		t.Run(name, func(t *testing.T) {
			report := check(t, text)
			expect(t, lines(report, lint.Warning), want)
			if n := strings.Count(text, "apiVersion"); report.Objects != n {
				t.Errorf("%d objects, want %d", report.Objects, n)
			}
		})
	}
}

func TestTextAfterAnObjectIsAnError(t *testing.T) {
	const want = "error | a.yaml |  |  | has more content after its first object"
	for name, text := range map[string]string{
		"an end of the document": rule() + "...\n" + rule("NoSchedule", "NoScheduling"),
		"objects in braces":      "{apiVersion: v1, kind: Node}\n{apiVersion: v1, kind: Node}\n",
		"text":                   asJSON(t, rule()) + "\nkind: Other\n",
	} {
		t.Run(name, func(t *testing.T) { expect(t, lines(check(t, text), lint.Warning), want) })
	}
	expect(t, lines(check(t, rule()+"...\n# the end\n"), lint.Warning))
	if _, err := lint.Objects(lint.Input{File: "dump", Data: []byte("{a: 1}\n{b: 2}")}); err == nil || !strings.Contains(err.Error(), "dump: has more content after") {
		t.Error(err)
	}
}

func TestAFileWithoutObjectsIsAWarning(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"comments":     "# nothing\n---\n# here\n",
		"empty list":   "apiVersion: v1\nkind: List\nitems: []\n",
		"list of null": "apiVersion: v1\nkind: List\nitems:\n",
	} {
		t.Run(name, func(t *testing.T) {
			report := check(t, rule(), text)
			expect(t, lines(report, lint.Warning), "warning | b.yaml |  |  | has no objects")
			if do := report.Findings[len(report.Findings)-1].Do; !strings.Contains(do, "did the command that writes it fail") {
				t.Errorf("hint %q", do)
			}
		})
	}
	expect(t, lines(check(t, "Not Found\n"), lint.Warning), "warning | a.yaml |  |  | is text, not a Kubernetes object")
}

func TestATemplateIsAnError(t *testing.T) {
	for _, text := range []string{rule("name: network", "name: {{ .Values.name }}"), "{{- if .Values.on }}\n" + rule() + "{{- end }}\n"} {
		report := check(t, text)
		expect(t, lines(report, lint.Warning), "error | a.yaml |  |  | is not valid YAML")
		if do := report.Findings[0].Do; !strings.Contains(do, "helm template") {
			t.Errorf("hint %q", do)
		}
	}
}

// bombs are short texts that expand to gigabytes.
func bombs() map[string]string {
	large := strings.Repeat("x", 1<<20)
	nested := []string{"a0: &a0 [" + large + "]\n"}
	for i := 1; i <= 5; i++ {
		nested = append(nested, fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10)))
	}
	return map[string]string{
		"many aliases":   "a: &a " + large + "\nb: [" + strings.Repeat("*a, ", 3000) + "]\n",
		"binary":         "a: &a !!binary " + large + "\nb: [" + strings.Repeat("*a, ", 3000) + "]\n",
		"nested aliases": strings.Join(nested, ""),
		"merged":         "a: &a {k: " + large + "}\nb: [" + strings.Repeat("{<<: *a}, ", 3000) + "]\n",
	}
}

func TestAliasesDoNotTakeAllMemory(t *testing.T) {
	for name, bomb := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			expect(t, lines(check(t, bomb), lint.Warning), "error | a.yaml |  |  | becomes too large when its aliases")
			hidden, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"config.yaml": bomb}})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, lines(check(t, string(hidden)), lint.Warning))
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 512 {
				t.Errorf("took %d MiB", took)
			}
		})
	}
	few := "x: &x {example.com/pool: workers}\n"
	report := check(t, few+rule("    matchLabels:\n      example.com/pool: workers\n", "    matchLabels: *x\n"))
	expect(t, lines(report, lint.Warning), "error … | x | is not a field") // a few are read
	expect(t, lines(check(t, "a: &a [*a]\n"), lint.Warning), "error … is not valid YAML: anchor 'a' value contains itself")
}
