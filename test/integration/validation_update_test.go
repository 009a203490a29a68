package integration_test

import (
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// full are the edits for a rule with a value in each immutable field.
var full = edits{
	"spec.conditions":                    "[{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'False', defaultStatus: 'True'}]",
	"spec.nodeSelector.matchExpressions": "[{key: zone, operator: In, values: [a, b]}]",
}

// ways are the requests with which a manifest changes an existing rule.
var ways = map[string]func(t *testing.T, c *testenv.Cluster, id string, body []byte) error{"replace": replace, "apply": apply}

// replace does what kubectl replace does.
func replace(t *testing.T, c *testenv.Cluster, id string, body []byte) error {
	t.Helper()
	for {
		var object map[string]any
		if err := json.Unmarshal(body, &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"].(map[string]any)["resourceVersion"] = ruleOf(t, c, id).ResourceVersion
		current, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		err = rawClient(t, c).Put().AbsPath(rulesPath, id).Param("fieldValidation", metav1.FieldValidationStrict).
			SetHeader("Content-Type", "application/json").Body(current).Do(t.Context()).Error()
		if !apierrors.IsConflict(err) { // the manager has written the rule meanwhile
			return err
		}
	}
}

// apply does what kubectl apply --server-side does.
func apply(t *testing.T, c *testenv.Cluster, id string, body []byte) error {
	t.Helper()
	return applyAs(t, c, "kubectl", id, body)
}

func applyAs(t *testing.T, c *testenv.Cluster, manager, id string, body []byte) error {
	t.Helper()
	return rawClient(t, c).Patch(types.ApplyYAMLPatchType).AbsPath(rulesPath, id).
		Param("fieldManager", manager).Param("fieldValidation", metav1.FieldValidationStrict).
		Body(body).Do(t.Context()).Error()
}

func TestAPIServerRejectsImmutableChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		to             edits
		field, message string
	}{
		"conditions": {edits{"spec.conditions.0.requiredStatus": "Unknown"}, "spec.conditions", "conditions is immutable: delete this rule"},
		"taint":      {edits{"spec.taint.effect": "PreferNoSchedule"}, "spec.taint.effect", "taint effect is immutable: delete this rule"},
		"no taint":   {edits{"spec.taint": manifest.Absent}, "spec.taint", "Required value"},
		"selector":   {edits{"spec.nodeSelector.matchExpressions": "[{key: zone, operator: In, values: [a, b, c]}]"}, "spec.nodeSelector", "nodeSelector is immutable: delete this rule"},
	} {
		for way, send := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				c, id := cluster(t), nameOf(t)
				remove(t, c, id)
				if err := apply(t, c, id, full.Rule(t, id)); err != nil {
					t.Fatal(err)
				}
				if err := testenv.CheckInvalid(send(t, c, id, full.And(tc.to).Rule(t, id)), tc.field, tc.message); err != nil {
					t.Error(err)
				}
				if generation := ruleOf(t, c, id).Generation; generation != 1 {
					t.Errorf("the spec was changed: generation %d", generation)
				}
			})
		}
	}
}

func TestAPIServerAcceptsChanges(t *testing.T) {
	for name, tc := range map[string]struct{ from, to edits }{
		"dryRun":                      {full, edits{"spec.dryRun": "true"}},
		"conditions in another order": {full, edits{"spec.conditions": "[{type: B, requiredStatus: 'False', defaultStatus: 'True'}, {type: A, requiredStatus: 'True'}]"}},
		"an empty taint value":        {edits{"spec.taint.value": manifest.Absent}, edits{"spec.taint.value": "''"}},
		"no empty taint value":        {edits{"spec.taint.value": "''"}, edits{"spec.taint.value": manifest.Absent}},
		"metadata":                    {full, edits{"metadata.labels": "{team: net}", "metadata.annotations": "{note: '🚀'}"}},
	} {
		for way, send := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				c, id := cluster(t), nameOf(t)
				remove(t, c, id)
				if err := apply(t, c, id, tc.from.Rule(t, id)); err != nil {
					t.Fatal(err)
				}
				if err := send(t, c, id, tc.from.And(tc.to).Rule(t, id)); err != nil {
					t.Fatal(err)
				}
				rule := c.EventuallyRule(t, id, "accepted as it is now", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
				if (rule.Status.DryRunResults != nil) != rule.Spec.DryRun {
					t.Errorf("dryRun is %t, but the dry-run results are %v", rule.Spec.DryRun, rule.Status.DryRunResults)
				}
			})
		}
	}
}

// A second field manager cannot add a condition to the list.
func TestAPIServerRejectsConditionsOfASecondFieldManager(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	if err := apply(t, c, id, edits{}.Rule(t, id)); err != nil {
		t.Fatal(err)
	}
	more := edits{"spec": "{conditions: [{type: C, requiredStatus: 'True'}]}"}.Rule(t, id)
	if err := testenv.CheckInvalid(applyAs(t, c, "second", id, more), "spec.conditions", "conditions is immutable"); err != nil {
		t.Error(err)
	}
	theirs := edits{"spec": "{taint: {effect: NoExecute}}"}.Rule(t, id)
	if err := applyAs(t, c, "second", id, theirs); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict of field managers, got %v", err)
	}
}
