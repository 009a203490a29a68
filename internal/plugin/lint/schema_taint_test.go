package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/testenv/manifest"
)

func TestSchemaRejectsTaints(t *testing.T) {
	const taint, effect, added = "spec.taint", "spec.taint.effect", "spec.taint.timeAdded"
	wantRejected(t,
		rejections{path: taint, message: required, values: missing},
		rejections{path: taint, message: noObject, values: []string{"readiness.k8s.io/a=pending:NoSchedule", "[readiness.k8s.io/a]"}},
		rejections{path: taint, field: "spec.taint.key", message: required, values: []string{"{}"}},
		rejections{path: effect, message: required, values: missing},
		rejections{path: effect, message: `supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
			values: text("", "noschedule", "NoSchedule ", "NoAdmit", "N\u043eSchedule")},
		rejections{path: effect, message: noString, values: []string{"[NoSchedule, NoExecute]"}},
		rejections{path: added, message: "must be of type date-time", values: []string{"yesterday", "'2026-01-31'", "'2026-02-31T00:00:00Z'", "1767225600"}},
	)
}

func TestSchemaRejectsTaintKeys(t *testing.T) {
	const key, prefix, other = "spec.taint.key", "readiness.k8s.io/", "startup-taint.cluster-autoscaler.kubernetes.io/"
	named := func(names ...string) []string {
		for i := range names {
			names[i] = prefix + names[i]
		}
		return text(names...)
	}
	long := strings.Repeat("a", 64)
	wantRejected(t,
		rejections{path: key, message: required, values: missing},
		rejections{path: key, message: noString, values: []string{"5", "true"}},
		rejections{path: key, message: "taint key must start with 'readiness.k8s.io/' or 'startup-taint.cluster-autoscaler.kubernetes.io/', e.g. 'readiness.k8s.io/NetworkReady'",
			values: text("", "NetworkReady", "example.com/NetworkReady", "node.kubernetes.io/not-ready", "x.readiness.k8s.io/NetworkReady",
				"readiness.k8s.io.example.com/a", "Readiness.K8s.io/NetworkReady", "readiness.k8s.i\u03bf/NetworkReady",
				" readiness.k8s.io/NetworkReady", "\nreadiness.k8s.io/NetworkReady")},
		rejections{path: key, message: "exactly one '/' separator, e.g. 'readiness.k8s.io/NetworkReady'",
			values: append(text("NetworkReady", "readiness.k8s.io"), named("../node.kubernetes.io/not-ready", "vendor.com/nfs-unhealthy", "/NetworkReady", "NetworkReady/")...)},
		rejections{path: key, message: "1-63 characters, e.g. 'readiness.k8s.io/NetworkReady'", values: append(named("", long), other+long)},
		rejections{path: key, message: "may not be more than 253", values: named(strings.Repeat("a", 254-len(prefix)), strings.Repeat("a", 1<<20))},
		rejections{path: key, message: "must consist of alphanumeric characters, '-', '_' or '.', e.g.",
			values: named("Network Ready", "a:NoSchedule", "a=b", "net🚀work", "Verfügbar", "N\u0435tworkReady", "a\u202ebc", "a\x00b", "a\nb", "a\n", "a\u200bb",
				"$(reboot)", "'; DROP TABLE nodes; --", "' || true || 'a", "{{ .Values.name }}", "*")},
		rejections{path: key, message: "must start and end with an alphanumeric character, e.g.",
			values: named("-NetworkReady", "NetworkReady-", ".NetworkReady", "NetworkReady_", "..")},
	)
}

func TestSchemaRejectsTaintValues(t *testing.T) {
	const value = "spec.taint.value"
	wantRejected(t,
		rejections{path: value, message: noString, values: []string{"1", "false", "[pending]"}},
		rejections{path: value, message: "may not be more than 63", values: text(strings.Repeat("a", 64))},
		rejections{path: value, message: "taint value must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, e.g. 'pending'",
			values: text(strings.Repeat("a", 62)+"\n", "not ready", "network/pending", "pending:NoSchedule", "-pending", "pending.", "🚀",
				"\u05e2\u05e8\u05d1", "a\x00b", "$(reboot)", "{{value}}", " ")},
	)
}

func TestSchemaAcceptsTaints(t *testing.T) {
	const key, value, added = "spec.taint.key", "spec.taint.value", "spec.taint.timeAdded"
	longest := strings.Repeat("a", 63)
	wantAccepted(t, map[string]manifest.Edits{
		"a name of one character":      {key: "readiness.k8s.io/7"},
		"a name of 63 characters":      {key: "readiness.k8s.io/" + longest},
		"a name of all kinds":          {key: "readiness.k8s.io/A-z_0.9"},
		"the prefix of the autoscaler": {key: "startup-taint.cluster-autoscaler.kubernetes.io/{id}"},
		"the longest key":              {key: "startup-taint.cluster-autoscaler.kubernetes.io/" + longest},
		"a value of 63 characters":     {value: longest},
		"a value of all kinds":         {value: "A-z_0.9"},
		"an empty value":               {value: "''"},
		"value null":                   {value: "null"},
		"no value":                     {value: manifest.Absent},
		"a quoted number as value":     {value: "'1'"},
		"PreferNoSchedule":             {"spec.taint.effect": "PreferNoSchedule"},
		"a time in the past":           {added: "'2026-01-31T12:00:00Z'"},
		"a time in the future":         {added: "'9999-12-31T23:59:59+14:00'"},
	}, map[string]string{"pool": "network"})
}
