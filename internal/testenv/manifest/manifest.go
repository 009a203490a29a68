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

	jsonpatch "github.com/evanphx/json-patch/v5"
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

// And returns both edits; if both have a path, the value of more counts.
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
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value,omitempty"`
	}
	var operations []operation
	for _, path := range slices.Sorted(maps.Keys(e)) { // a list before its items
		next := operation{Op: "add", Path: "/" + strings.ReplaceAll(path, ".", "/")}
		if e[path] == Absent {
			next.Op = "remove"
		} else {
			next.Value = toJSON(t, strings.ReplaceAll(e[path], "{id}", id))
		}
		if last := path[strings.LastIndexByte(path, '.')+1:]; next.Op == "add" && strings.Trim(last, "0123456789") == "" {
			next.Op = "replace" // an item of a list
		}
		operations = append(operations, next)
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		t.Fatal(err)
	}
	options := jsonpatch.NewApplyOptions()
	options.EnsurePathExistsOnAdd, options.AllowMissingPathOnRemove = true, true
	body, err := patch.ApplyWithOptions(toJSON(t, strings.ReplaceAll(valid, "{id}", id)), options)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func toJSON(t testing.TB, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%q is not YAML: %v", text, err)
	}
	return data
}
