// Package manifest makes manifests of NodeReadinessRules for tests: a valid one, with single fields edited.
package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// valid is a manifest without an error. {id} stands for the name of the rule.
const valid = `apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: {id}
spec:
  conditions:
  - type: example.com/NetworkReady
    requiredStatus: "True"
  taint:
    key: readiness.k8s.io/{id}
    value: pending
    effect: NoSchedule
  enforcementMode: continuous
  nodeSelector:
    matchLabels:
      pool: {id}
`

// Edits change the valid manifest: dotted path to a value in YAML. Numbers are indexes of lists.
type Edits map[string]string

// Absent is the value that removes a field.
const Absent = "\x00absent"

// Text returns the YAML value that is exactly this text.
func Text(text string) string { return strconv.Quote(text) }

// List returns n items of a flow list; %d is the index of an item.
func List(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return strings.Join(items, ", ")
}

// And returns both edits; of two values of one path it takes that of more.
func (e Edits) And(more Edits) Edits {
	both := maps.Clone(e)
	if both == nil {
		both = Edits{}
	}
	maps.Copy(both, more)
	return both
}

// Rule returns the edited manifest of the rule with this name, as JSON.
func (e Edits) Rule(t testing.TB, id string) []byte {
	t.Helper()
	object := parse(t, strings.ReplaceAll(valid, "{id}", id)).(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(e)) { // a list before its items
		value := strings.ReplaceAll(e[path], "{id}", id)
		steps := strings.Split(path, ".")
		last := steps[len(steps)-1]
		switch parent := child(t, object, steps[:len(steps)-1]).(type) {
		case []any:
			index, _ := strconv.Atoi(last)
			parent[index] = parse(t, value)
		case map[string]any:
			if value == Absent {
				delete(parent, last)
			} else {
				parent[last] = parse(t, value)
			}
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// child returns the value at the path, and creates maps that are missing.
func child(t testing.TB, from any, steps []string) any {
	t.Helper()
	for _, step := range steps {
		switch parent := from.(type) {
		case map[string]any:
			if parent[step] == nil {
				parent[step] = map[string]any{}
			}
			from = parent[step]
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			from = parent[index]
		default:
			t.Fatalf("%v has no fields", from)
		}
	}
	return from
}

func parse(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q is not YAML: %v", text, err)
	}
	return value
}
