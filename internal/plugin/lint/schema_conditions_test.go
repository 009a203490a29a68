package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/testenv/manifest"
)

const (
	required = "Required value"
	noString = "must be of type string"
	noList   = "must be of type array"
	noObject = "must be of type object"

	mode          = "spec.enforcementMode"
	bootstrapOnly = "bootstrap-only"
)

var (
	missing   = []string{manifest.Absent, "null"}
	bootstrap = manifest.Edits{mode: bootstrapOnly}
)

func requirements(n int) string {
	return "[" + manifest.List(n, "{type: example.com/Ready%d, requiredStatus: 'True'}") + "]"
}

func TestSchemaRejectsConditions(t *testing.T) {
	const (
		list           = "spec.conditions"
		conditionType  = "spec.conditions.0.type"
		requiredStatus = "spec.conditions.0.requiredStatus"
		defaultStatus  = "spec.conditions.0.defaultStatus"
		statuses       = `supported values: "True", "False", "Unknown"`
		duplicate      = `Duplicate value: {"type":"A"}`
		noDefault      = "defaultStatus cannot be used with enforcementMode bootstrap-only"
	)
	wantRejected(t,
		rejections{path: list, message: required, values: missing},
		rejections{path: list, message: "at least 1 item", values: []string{"[]"}},
		rejections{path: list, message: noList, values: []string{"{}", "NetworkReady"}},
		rejections{path: list, message: "must have at most 32 items", values: []string{requirements(33), requirements(50_000)}},
		rejections{path: list, field: "spec.conditions[0]", message: noObject, values: []string{"[null]", "[NetworkReady]"}},
		rejections{path: list, field: "spec.conditions[1]", message: duplicate, values: []string{
			"[{type: A, requiredStatus: 'True'}, {type: A, requiredStatus: 'True'}]",
			"[{type: A, requiredStatus: 'True'}, {type: A, requiredStatus: 'False'}]",
		}},

		rejections{path: conditionType, message: required, values: missing},
		rejections{path: conditionType, message: "at least 1 chars long", values: text("")},
		rejections{path: conditionType, message: noString, values: []string{"5", "[A, B]"}},
		rejections{path: conditionType, message: "may not be more than 316", values: text(strings.Repeat("a", 317), strings.Repeat("a", 1<<20))},

		rejections{path: requiredStatus, message: required, values: missing},
		rejections{path: requiredStatus, message: statuses, values: append(text("", "true", "Ready", "True ", "True\n", "\u0422rue"), "True")},
		rejections{path: requiredStatus, message: noString, values: []string{"False", "['True', 'False']"}},

		rejections{path: defaultStatus, message: statuses, values: []string{"''", "True", "unknown"}},
		rejections{path: defaultStatus, field: list, message: noDefault, with: bootstrap, values: []string{"'False'"}},
		rejections{path: list, message: "remove defaultStatus, or use enforcementMode continuous", with: bootstrap, values: []string{
			strings.TrimSuffix(requirements(31), "]") + ", {type: A, requiredStatus: 'True', defaultStatus: 'True'}]",
		}},
	)
}

func TestSchemaRejectsModes(t *testing.T) {
	const (
		policy = "spec.conditionPolicy"
		dryRun = "spec.dryRun"
	)
	wantRejected(t,
		rejections{path: policy, message: `supported values: "allOf", "anyOf"`, values: text("", "AllOf", "oneOf")},
		rejections{path: policy, message: noString, values: []string{"[anyOf]"}},
		rejections{path: policy, message: "anyOf cannot be used with enforcementMode bootstrap-only", with: bootstrap, values: []string{"anyOf"}},
		rejections{path: mode, message: required, values: missing},
		rejections{path: mode, message: `supported values: "bootstrap-only", "continuous"`,
			values: text("", "Continuous", "bootstrap_only", "bootstrap\u2011only", "{{ .Values.mode }}")},
		rejections{path: mode, message: noString, values: []string{"[bootstrap-only, continuous]"}},
		rejections{path: dryRun, message: "must be of type boolean", values: []string{"'true'", "1"}},
		rejections{path: "spec", message: required, values: missing},
		rejections{path: "spec", field: "spec.conditions", message: required, values: []string{"{}"}},
		rejections{path: "spec", message: noObject, values: []string{bootstrapOnly, "[{}]"}},
	)
}

func TestSchemaAcceptsConditions(t *testing.T) {
	cases := map[string]manifest.Edits{
		"no edit":                              {},
		"32 conditions":                        {"spec.conditions": requirements(32)},
		"types that differ in case only":       {"spec.conditions": "[{type: ready, requiredStatus: 'True'}, {type: Ready, requiredStatus: 'True'}]"},
		"a required status False":              {"spec.conditions": "[{type: example.com/Broken, requiredStatus: 'False'}]"},
		"anyOf of one":                         {"spec.conditionPolicy": "anyOf"},
		"allOf with bootstrap-only":            {"spec.conditionPolicy": "allOf", mode: bootstrapOnly},
		"defaultStatus null":                   {"spec.conditions.0.defaultStatus": "null"},
		"conditionPolicy null":                 {"spec.conditionPolicy": "null"},
		"dryRun null":                          {"spec.dryRun": "null"},
		"dryRun false":                         {"spec.dryRun": "false"},
		"dryRun no, which YAML reads as false": {"spec.dryRun": "no"},
		"a default that is not enough":         {"spec.conditions.0.defaultStatus": "'False'"},
	}
	for _, hostile := range []string{
		"a", strings.Repeat("a", 316), strings.Repeat("🚀", 316), "\u202eydaeR\u202c/מוכן", "Network\nReady", "Network\x00Ready",
		"$(reboot); `reboot` | tee ../../etc/passwd", "'; DROP TABLE nodes; --", `' || true || self.conditions.exists(c, c.type == "`,
		"{{ .Values.condition }}", "%s%d%n%!v(MISSING)", "<script>alert(1)</script>",
	} {
		cases["type "+hostile[:min(len(hostile), 20)]] = manifest.Edits{"spec.conditions.0.type": manifest.Text(hostile)}
	}
	wantAccepted(t, cases, map[string]string{"pool": "network"})
}

func TestSchemaRejectsSafetyFields(t *testing.T) {
	const (
		unavailable = "spec.maxUnavailable"
		ready       = "spec.minReadySeconds"
		scope       = "spec.bootstrapScope"
		deadline    = "spec.progressDeadlineSeconds"
		action      = "spec.onDeadline"
		age         = "spec.conditions.0.maxAge"
		tolerations = "spec.tolerations"
		number      = "a number of nodes from 0 to 1000000, e.g. 1, or a percentage from 0% to 100%, e.g. 10%"
	)
	wantRejected(t,
		rejections{path: unavailable, message: number, values: []string{"-1", "some", "3000000000", "101%", "'10'"}},
		rejections{path: unavailable, message: "must be of type", values: []string{"1.5"}},
		rejections{path: unavailable, message: "or use enforcementMode continuous", with: bootstrap, values: []string{"1"}},
		rejections{path: ready, message: "greater than or equal to 0", values: []string{"-1"}},
		rejections{path: ready, message: "less than or equal to 86400", values: []string{"86401"}},
		rejections{path: ready, message: "must be of type integer", values: []string{"10s"}},
		rejections{path: scope, message: `supported values: "Node", "Boot"`, with: bootstrap, values: []string{"Reboot"}},
		rejections{path: scope, message: "or use enforcementMode bootstrap-only", values: []string{"Boot"}},
		rejections{path: scope, message: "use NoSchedule", with: bootstrap.And(manifest.Edits{"spec.taint.effect": "NoExecute"}), values: []string{"Boot"}},
		rejections{path: deadline, message: "must be greater than minReadySeconds", with: manifest.Edits{ready: "60"}, values: []string{"60"}},
		rejections{path: deadline, message: "greater than or equal to 1", values: []string{"0"}},
		rejections{path: action, message: `supported values: "Report", "Release"`, with: manifest.Edits{deadline: "60"}, values: []string{"Evict"}},
		rejections{path: action, message: "set progressDeadlineSeconds", values: []string{"Release"}},
		rejections{path: age, message: "of at least 60s", values: []string{"59s"}},
		rejections{path: age, message: noString, values: []string{"60"}},
		rejections{path: age, message: "must be a duration in h, m and s of at least 60s, e.g. 2m", values: []string{"soon"}},
		rejections{path: tolerations, message: "a daemonSetSelector, a namespaceSelector or both", values: []string{"{}"}},
		rejections{path: tolerations + ".daemonSetSelector", message: "the selector must not be empty", values: []string{"{}"}},
		rejections{path: tolerations + ".daemonSetSelector", field: tolerations + ".daemonSetSelector.matchExpressions[0].operator",
			message: `supported values: "In", "NotIn", "Exists", "DoesNotExist"`, values: []string{"{matchExpressions: [{key: a, operator: Is, values: [b]}]}"}},
		rejections{path: tolerations + ".namespaceSelector", field: tolerations + ".namespaceSelector.matchLabels[a]",
			message: "label value must be", values: []string{"{matchLabels: {a: b c}}"}},
		rejections{path: "spec.dependsOn", field: "spec.dependsOn[1]", message: "Duplicate value", values: []string{"[a, a]"}},
		rejections{path: "spec.dependsOn", field: "spec.dependsOn[0]", message: "at least 1 chars", values: []string{"['']"}},
	)
}

func TestSchemaRejectsUnknownFields(t *testing.T) {
	for path, value := range map[string]string{
		"spec.conditionpolicy":                       "anyOf",
		"spec.requiredDaemonSets":                    "[{name: nvidia-device-plugin}]",
		"spec.conditions.0.status":                   "'True'",
		"spec.conditions.0.__proto__":                "{polluted: true}",
		"spec.taint.operator":                        "Exists",
		"spec.nodeSelector.matchFields":              "[{key: metadata.name, operator: In, values: [a]}]",
		"spec.nodeSelector.nodeSelectorTerms":        "[]",
		"spec.nodeSelector.matchExpressions.0.value": "a",
		"status.phase":                               "Released",
		"metadata.lables":                            "{team: a}",
		"data":                                       "{a: b}",
	} {
		wantRejected(t, rejections{path: path, message: "is not a field of this kind", values: []string{value},
			with: manifest.Edits{"spec.nodeSelector.matchExpressions": "[{key: pool, operator: Exists}]"}})
	}
}

func TestSchemaRejectsMetadata(t *testing.T) {
	const name = "metadata.name"
	wantRejected(t,
		rejections{path: name, message: "lowercase RFC 1123 subdomain", values: text("Network", "network_x", "a/../x", "a🚀")},
		rejections{path: name, message: "must be no more than 253", values: text(strings.Repeat("a", 254))},
		rejections{path: name, message: "name or generateName is required", values: append(text(""), manifest.Absent)},
		rejections{path: "metadata.labels", message: "a valid label must be", values: []string{"{a: 'b c'}"}},
		rejections{path: "metadata.finalizers", message: "name part must consist of", values: []string{"['clean up']"}},
		rejections{path: "metadata.annotations", message: "Too long", values: []string{"{a: " + strings.Repeat("a", 300<<10) + "}"}},
	)
}
