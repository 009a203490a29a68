package lint_test

import (
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// full is a rule with a value in each immutable field.
var full = manifest.Edits{
	"spec.conditions": "[{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'False', defaultStatus: 'True'}]",
	expressions:       "[{key: zone, operator: In, values: [a, b]}]",
}

func change(t *testing.T, from, to manifest.Edits) []lint.Finding {
	t.Helper()
	var states [2]*v1alpha1.NodeReadinessRule
	for i, edits := range []manifest.Edits{from, from.And(to)} {
		report := check(t, string(edits.Rule(t, "network")))
		if len(report.Rules) != 1 {
			t.Fatalf("%v: %v", edits, lines(report, lint.Error))
		}
		states[i] = report.Rules[0]
	}
	findings, err := lint.Change(states[0], states[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Object != "NodeReadinessRule/network" {
			t.Errorf("a finding is about %q", f.Object)
		}
	}
	return findings
}

func TestSchemaRejectsChangesOfImmutableFields(t *testing.T) {
	const (
		conditions = "spec.conditions"
		policy     = "spec.conditionPolicy"
		taint      = "spec.taint"
	)
	for _, tc := range []struct {
		field, message string
		from           manifest.Edits
		to             []manifest.Edits
	}{
		{conditions, "conditions is immutable: delete this rule and create one with the conditions you want", full, []manifest.Edits{
			{conditions: "[{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'False', defaultStatus: 'True'}, {type: C, requiredStatus: 'True'}]"},
			{conditions: "[{type: A, requiredStatus: 'True'}]"},
			{"spec.conditions.0.type": "C"}, {"spec.conditions.0.requiredStatus": "Unknown"}, {"spec.conditions.1.defaultStatus": "Unknown"},
			{"spec.conditions.0.defaultStatus": "'True'"}, {"spec.conditions.1.defaultStatus": manifest.Absent}, {"spec.conditions.0.defaultStatus": "Unknown"},
		}},
		{policy, "conditionPolicy is immutable (absent means allOf): delete this rule and create one with the policy you want", nil, []manifest.Edits{{policy: "anyOf"}}},
		{policy, "conditionPolicy is immutable", manifest.Edits{policy: "anyOf"}, []manifest.Edits{{policy: manifest.Absent}, {policy: "allOf"}}},
		{mode, "enforcementMode is immutable: delete this rule and create one with the mode you want", nil, []manifest.Edits{{mode: bootstrapOnly}}},
		{mode, "enforcementMode is immutable", manifest.Edits{mode: bootstrapOnly}, []manifest.Edits{{mode: "continuous"}}},
		{taint + ".key", "taint key is immutable: delete this rule and create one with the taint you want", nil, []manifest.Edits{{taint + ".key": "readiness.k8s.io/{id}-2"}}},
		{taint + ".effect", "taint effect is immutable: delete this rule and create one with the taint you want", nil, []manifest.Edits{{taint + ".effect": "PreferNoSchedule"}}},
		{taint + ".value", "taint value is immutable: delete this rule and create one with the taint you want", nil, []manifest.Edits{{taint + ".value": "done"}, {taint + ".value": manifest.Absent}}},
		{taint + ".value", "taint value is immutable", manifest.Edits{taint + ".value": manifest.Absent}, []manifest.Edits{{taint + ".value": "done"}}},
		{selector, "nodeSelector is immutable: delete this rule and create one with the selector you want", full, []manifest.Edits{
			{labels: "{pool: '{id}-2'}"}, {labels: "{pool: '{id}', zone: a}"}, {selector: "{matchExpressions: [{key: pool, operator: In, values: ['{id}']}]}", expressions: "[{key: pool, operator: In, values: ['{id}']}]"},
			{expressions: "[{key: zone, operator: Exists}]"}, {expressions: manifest.Absent}, {expressions: "[{key: zone, operator: NotIn, values: [a, b]}]"},
			{expressions: "[{key: zone, operator: In, values: [a, b, c]}]"},
		}},
	} {
		for _, to := range tc.to {
			if err := findingOf(change(t, tc.from, to), tc.field, tc.message); err != "" {
				t.Errorf("from %v to %v: %s", tc.from, to, err)
			}
		}
	}
}

func TestSchemaAcceptsChanges(t *testing.T) {
	const policy, dryRun, added = "spec.conditionPolicy", "spec.dryRun", "spec.taint.timeAdded"
	for name, tc := range map[string]struct{ from, to manifest.Edits }{
		"no change":                     {full, nil},
		"dryRun set":                    {full, manifest.Edits{dryRun: "true"}},
		"dryRun from false to true":     {manifest.Edits{dryRun: "false"}, manifest.Edits{dryRun: "true"}},
		"dryRun from true to false":     {manifest.Edits{dryRun: "true"}, manifest.Edits{dryRun: "false"}},
		"dryRun removed":                {manifest.Edits{dryRun: "true"}, manifest.Edits{dryRun: manifest.Absent}},
		"the default policy set":        {full, manifest.Edits{policy: "allOf"}},
		"the default policy removed":    {manifest.Edits{policy: "allOf"}, manifest.Edits{policy: manifest.Absent}},
		"conditions in another order":   {full, manifest.Edits{"spec.conditions": "[{type: B, requiredStatus: 'False', defaultStatus: 'True'}, {type: A, requiredStatus: 'True'}]"}},
		"the time of the taint set":     {full, manifest.Edits{added: "'2026-01-31T12:00:00Z'"}},
		"the time of the taint removed": {manifest.Edits{added: "'2026-01-31T12:00:00Z'"}, manifest.Edits{added: manifest.Absent}},
	} {
		if findings := change(t, tc.from, tc.to); len(findings) > 0 {
			t.Errorf("%s: %v", name, findings)
		}
	}
}
