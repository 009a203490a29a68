package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/testenv/manifest"
)

const (
	selector    = "spec.nodeSelector"
	labels      = "spec.nodeSelector.matchLabels"
	expressions = "spec.nodeSelector.matchExpressions"
)

func TestSchemaRejectsSelectors(t *testing.T) {
	wantRejected(t,
		rejections{path: selector, message: required, values: missing},
		rejections{path: selector, message: "nodeSelector must not be empty, otherwise the rule would hold every node, including the control plane: name at least one label, e.g. matchLabels {kubernetes.io/os: linux}",
			values: []string{"{}", "{matchLabels: {}}", "{matchLabels: null}", "{matchExpressions: []}", "{matchExpressions: null}", "{matchLabels: {}, matchExpressions: []}"}},
		rejections{path: selector, message: noObject, values: []string{"pool=workers", "[workers]"}},
	)
}

func TestSchemaRejectsLabels(t *testing.T) {
	wantRejected(t,
		rejections{path: labels, message: noObject, values: []string{"pool=workers", "[pool]"}},
		rejections{path: labels, message: "must have at most 64 items", values: []string{"{" + manifest.List(65, "l%d: a") + "}"}},
		rejections{path: labels, message: "label key must be 1-317 characters, e.g. 'node-role.kubernetes.io/worker'",
			values: []string{"{'': workers}", "{" + strings.Repeat("a", 254) + "/" + strings.Repeat("b", 63) + ": a}"}},
		rejections{path: labels + ".pool", message: noString, values: []string{"1", "true", "[a, b]"}},
		rejections{path: labels + ".pool", message: "may not be more than 63", values: text(strings.Repeat("a", 64))},
		rejections{path: labels + ".pool", field: labels + "[pool]",
			message: "label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends",
			values:  text("a b", "a/b", "a,b", "!a", "🚀", "a\x00", "a\n", "\u202ea", "$(reboot)", "{{ pool }}", "a-")},
	)
}

// The CRD does not check keys of matchLabels: that costs too much. The core rejects such a rule.
func TestCoreRejectsLabelKeys(t *testing.T) {
	long := strings.Repeat("a", 64)
	for key, message := range map[string]string{
		"node pool": "must consist of alphanumeric characters, '-', '_' or '.'", "a/b/c": "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
		"example.com/": "name part must be non-empty", "/pool": "prefix part must be non-empty", "Example.com/pool": "prefix part a lowercase RFC 1123 subdomain",
		long: "must be no more than 63", " " + strings.Repeat("a", 316): "must be no more than 63",
		"../../pool": "must consist of", "🚀": "must consist of", "pool\n": "must consist of", "po\x00ol": "must consist of", "%s%d%n": "must consist of",
		"' || true || '": "must consist of", "{{ .Values.pool }}": "must consist of",
	} {
		values := []string{"{pool: a, " + manifest.Text(key) + ": a}"}
		wantRejected(t, rejections{path: labels, field: "spec", message: message, values: values})
		if len(key) < len(long) {
			wantRejected(t, rejections{path: labels, field: "spec", message: labels + "[" + key + "]", values: values})
		}
	}
}

func TestSchemaRejectsExpressions(t *testing.T) {
	const (
		first, key, operator, values = expressions + ".0", expressions + ".0.key", expressions + ".0.operator", expressions + ".0.values"

		name      = "label key must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'node-role.kubernetes.io/worker'"
		needed    = "values must not be empty when operator is In or NotIn"
		forbidden = "values must be empty when operator is Exists or DoesNotExist: remove them, or use In or NotIn"
	)
	exists := manifest.Edits{expressions: "[{key: a, operator: Exists}]"}
	in, notIn := manifest.Edits{expressions: "[{key: a, operator: In}]"}, manifest.Edits{expressions: "[{key: a, operator: NotIn}]"}
	doesNotExist := manifest.Edits{expressions: "[{key: a, operator: DoesNotExist}]"}
	long := strings.Repeat("a", 254)
	wantRejected(t,
		rejections{path: expressions, message: noList, values: []string{"pool in (a, b)"}},
		rejections{path: expressions, message: "must have at most 64 items", values: []string{"[" + manifest.List(65, "{key: a%d, operator: Exists}") + "]"}},
		rejections{path: first, with: exists, message: noObject, values: []string{"null"}},
		rejections{path: key, with: exists, message: required, values: missing},
		rejections{path: key, with: exists, message: noString, values: []string{"5"}},
		rejections{path: key, with: exists, message: name, values: text("", "a/b/c", "example.com/", "/a", "Example.com/a", "a b", "p\u043eol", "pool\n", "po\x00ol",
			"$(reboot)", "../pool", strings.Repeat("a", 64))},
		rejections{path: key, with: exists, message: "may not be more than 317", values: text(long + "/" + strings.Repeat("b", 63))},
		rejections{path: key, with: exists, message: "at most 253 characters before its '/'", values: text(long + "/b")},
		rejections{path: operator, with: exists, message: required, values: missing},
		rejections{path: operator, with: exists, message: `supported values: "In", "NotIn", "Exists", "DoesNotExist"`, values: text("", "exists", "Gt", "=")},
		rejections{path: values, with: in, message: needed, values: append([]string{"[]"}, missing...)},
		rejections{path: values, with: notIn, message: needed, values: []string{manifest.Absent}},
		rejections{path: values, with: exists, message: forbidden, values: []string{"[b]"}},
		rejections{path: values, with: doesNotExist, message: forbidden, values: []string{"['']"}},
		rejections{path: values, with: in, message: noList, values: []string{"b"}},
		rejections{path: values, with: in, field: expressions + "[0].values[0]", message: noString, values: []string{"[1]", "[null]"}},
		rejections{path: values, with: in, field: expressions + "[0].values[0]", message: "may not be more than 63", values: []string{"[" + strings.Repeat("a", 64) + "]"}},
		rejections{path: values, with: in, field: expressions + "[0].values[1]", message: "label value must be empty or consist of alphanumeric characters", values: []string{"[ok, 'a b']"}},
		rejections{path: values, with: in, message: "must have at most 256 items", values: []string{"[" + manifest.List(257, "v%d") + "]"}},
	)
}

func TestSchemaAcceptsSelectors(t *testing.T) {
	long := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63)
	node := map[string]string{"pool": "network", long: "b", "empty": ""}
	for i := range 64 {
		node[fmt.Sprintf("example.com/l%d", i)] = "a"
	}
	wantAccepted(t, map[string]manifest.Edits{
		"64 labels":      {labels: "{" + manifest.List(64, "example.com/l%d: a") + "}"},
		"an empty value": {labels: "{empty: ''}"},
		"null as value, which is the empty value":  {labels: "{pool: '{id}', empty: }"},
		"a key of 317 characters":                  {labels: "{" + long + ": b}"},
		"a key of 317 characters in an expression": {selector: "{matchExpressions: [{key: " + long + ", operator: In, values: [b]}]}"},
		"256 values":           {expressions: "[{key: pool, operator: In, values: [{id}, " + manifest.List(255, "v%d") + "]}]"},
		"64 expressions":       {expressions: "[" + manifest.List(64, "{key: a%d, operator: DoesNotExist}") + "]"},
		"the same value twice": {expressions: "[{key: pool, operator: In, values: [{id}, {id}]}]"},
		"all four operators": {expressions: "[{key: pool, operator: Exists}, {key: pool, operator: In, values: [{id}]}, " +
			"{key: pool, operator: NotIn, values: [b]}, {key: a, operator: DoesNotExist}]"},
		"NotIn of an absent label": {expressions: "[{key: a, operator: NotIn, values: ['']}]"},
		"Exists with empty values": {expressions: "[{key: pool, operator: Exists, values: []}]"},
		"expressions null":         {expressions: "null"},
	}, node)
}
