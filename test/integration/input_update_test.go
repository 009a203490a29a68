package integration_test

import (
	"encoding/json"
	"maps"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// rich is the rule that updates start from: something to change in every field.
var rich = edits{
	"spec.conditions":                    "[{type: A, requiredStatus: 'True'}, {type: B, requiredStatus: 'False', defaultStatus: 'True'}]",
	"spec.nodeSelector.matchExpressions": "[{key: zone, operator: In, values: [a, b]}]",
}

// and is both edits, one after the other.
func (e edits) and(more edits) edits {
	if e == nil {
		return more
	}
	both := maps.Clone(e)
	maps.Copy(both, more)
	return both
}

// ways are how a manifest reaches a rule that exists.
var ways = map[string]func(t *testing.T, c *testenv.Cluster, id string, body []byte) error{"replaced": replace, "applied": apply}

// replace is what kubectl replace does.
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
			SetHeader("Content-Type", asJSON).Body(current).Do(t.Context()).Error()
		if !apierrors.IsConflict(err) { // the manager writes too
			return err
		}
	}
}

// apply is what kubectl apply --server-side does.
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

func ruleOf(t *testing.T, c *testenv.Cluster, id string) *v1alpha1.NodeReadinessRule {
	t.Helper()
	var rule v1alpha1.NodeReadinessRule
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: id}, &rule); err != nil {
		t.Fatal(err)
	}
	return &rule
}

func TestInputThatChangesWhatIsImmutableIsRefused(t *testing.T) {
	const (
		conditions = "spec.conditions"
		policy     = "spec.conditionPolicy"
		taint      = "spec.taint"
		selector   = "spec.nodeSelector"
		labels     = "spec.nodeSelector.matchLabels"
		zones      = "spec.nodeSelector.matchExpressions"

		conditionsSay = "conditions is immutable: delete this rule and create one with the conditions you want"
		policySays    = "conditionPolicy is immutable (absent means allOf): delete this rule and create one with the policy you want"
		selectorSays  = "nodeSelector is immutable: delete this rule and create one with the selector you want"
	)
	tests := map[string]struct {
		from, to    edits
		field, says string
	}{
		"a condition more":                 {nil, edits{conditions: "[{type: example.com/NetworkReady, requiredStatus: 'True'}, {type: C, requiredStatus: 'True'}]"}, conditions, conditionsSay},
		"a condition less":                 {rich, edits{conditions: "[{type: A, requiredStatus: 'True'}]"}, conditions, conditionsSay},
		"another condition":                {nil, edits{"spec.conditions.0.type": "C"}, conditions, conditionsSay},
		"another requiredStatus":           {rich, edits{"spec.conditions.0.requiredStatus": "Unknown"}, conditions, conditionsSay},
		"another defaultStatus":            {rich, edits{"spec.conditions.1.defaultStatus": "Unknown"}, conditions, conditionsSay},
		"a defaultStatus more":             {rich, edits{"spec.conditions.0.defaultStatus": "'True'"}, conditions, conditionsSay},
		"a defaultStatus less":             {rich, edits{"spec.conditions.1.defaultStatus": absent}, conditions, conditionsSay},
		"a defaultStatus of what is meant": {rich, edits{"spec.conditions.0.defaultStatus": "Unknown"}, conditions, conditionsSay},
		"conditionPolicy to anyOf":         {nil, edits{policy: "anyOf"}, policy, policySays},
		"conditionPolicy to absent":        {edits{policy: "anyOf"}, edits{policy: absent}, policy, policySays},
		"conditionPolicy to allOf":         {edits{policy: "anyOf"}, edits{policy: "allOf"}, policy, policySays},
		"enforcementMode to bootstrap":     {nil, edits{"spec.enforcementMode": bootstrapOnly}, "spec.enforcementMode", "enforcementMode is immutable: delete this rule and create one with the mode you want"},
		"enforcementMode to continuous":    {edits{"spec.enforcementMode": bootstrapOnly}, edits{"spec.enforcementMode": "continuous"}, "spec.enforcementMode", "enforcementMode is immutable"},
		"another taint key":                {nil, edits{"spec.taint.key": "readiness.k8s.io/{id}-2"}, taint + ".key", "taint key is immutable: delete this rule and create one with the taint you want"},
		"another taint effect":             {nil, edits{"spec.taint.effect": "PreferNoSchedule"}, taint + ".effect", "taint effect is immutable: delete this rule and create one with the taint you want"},
		"another taint value":              {nil, edits{"spec.taint.value": "done"}, taint + ".value", "taint value is immutable: delete this rule and create one with the taint you want"},
		"a taint value less":               {nil, edits{"spec.taint.value": absent}, taint + ".value", "taint value is immutable"},
		"a taint value more":               {edits{"spec.taint.value": absent}, edits{"spec.taint.value": "done"}, taint + ".value", "taint value is immutable"},
		"no taint":                         {nil, edits{taint: absent}, taint, "Required value"},
		"another label":                    {nil, edits{labels: "{pool: '{id}-2'}"}, selector, selectorSays},
		"a label more":                     {nil, edits{labels: "{pool: '{id}', zone: a}"}, selector, selectorSays},
		"labels as an expression":          {nil, edits{selector: "{matchExpressions: [{key: pool, operator: In, values: ['{id}']}]}"}, selector, selectorSays},
		"an expression more":               {nil, edits{zones: "[{key: zone, operator: Exists}]"}, selector, selectorSays},
		"an expression less":               {rich, edits{zones: absent}, selector, selectorSays},
		"another operator":                 {rich, edits{zones: "[{key: zone, operator: NotIn, values: [a, b]}]"}, selector, selectorSays},
		"a value more":                     {rich, edits{zones: "[{key: zone, operator: In, values: [a, b, c]}]"}, selector, selectorSays},
		"an empty selector":                {rich, edits{selector: "{}"}, selector, selectorSays},
	}
	for name, tc := range tests {
		for way, send := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				c, id := cluster(t), nameOf(t)
				remove(t, c, id)
				if err := apply(t, c, id, edited(t, id, tc.from)); err != nil {
					t.Fatal(err)
				}
				if err := complaint(send(t, c, id, edited(t, id, tc.from.and(tc.to))), tc.field, tc.says); err != nil {
					t.Error(err)
				}
				if generation := ruleOf(t, c, id).Generation; generation != 1 {
					t.Errorf("the spec was changed: generation %d", generation)
				}
			})
		}
	}
}

func TestInputThatChangesWhatMayChangeIsAccepted(t *testing.T) {
	const policy, dryRun = "spec.conditionPolicy", "spec.dryRun"
	tests := map[string]struct{ from, to edits }{
		"nothing at all":                 {rich, nil},
		"dryRun on":                      {rich, edits{dryRun: "true"}},
		"dryRun from false to on":        {edits{dryRun: "false"}, edits{dryRun: "true"}},
		"dryRun off":                     {edits{dryRun: "true"}, edits{dryRun: "false"}},
		"dryRun away":                    {edits{dryRun: "true"}, edits{dryRun: absent}},
		"conditionPolicy said":           {rich, edits{policy: "allOf"}},
		"conditionPolicy no longer said": {edits{policy: "allOf"}, edits{policy: absent}},
		"conditions in another order":    {rich, edits{"spec.conditions": "[{type: B, requiredStatus: 'False', defaultStatus: 'True'}, {type: A, requiredStatus: 'True'}]"}},
		"the empty taint value said":     {edits{"spec.taint.value": absent}, edits{"spec.taint.value": "''"}},
		"the empty taint value left out": {edits{"spec.taint.value": "''"}, edits{"spec.taint.value": absent}},
		"when the taint was added":       {rich, edits{"spec.taint.timeAdded": "'2026-01-31T12:00:00Z'"}},
		"when the taint was added, away": {edits{"spec.taint.timeAdded": "'2026-01-31T12:00:00Z'"}, edits{"spec.taint.timeAdded": absent}},
		"labels and annotations":         {rich, edits{"metadata.labels": "{team: net}", "metadata.annotations": "{note: '🚀'}"}},
	}
	for name, tc := range tests {
		for way, send := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				c, id := cluster(t), nameOf(t)
				remove(t, c, id)
				if err := apply(t, c, id, edited(t, id, tc.from)); err != nil {
					t.Fatal(err)
				}
				if err := send(t, c, id, edited(t, id, tc.from.and(tc.to))); err != nil {
					t.Fatalf("was refused: %v", err)
				}
				rule := c.EventuallyRule(t, id, "accepted as it is now", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
				if (rule.Status.DryRunResults != nil) != rule.Spec.DryRun {
					t.Errorf("dryRun is %t, and its results are %v", rule.Spec.DryRun, rule.Status.DryRunResults)
				}
			})
		}
	}
}

// Two owners of one list cannot smuggle a condition into it.
func TestInputThatIsAppliedByAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	if err := apply(t, c, id, edited(t, id, nil)); err != nil {
		t.Fatal(err)
	}
	more := edited(t, id, edits{"spec": "{conditions: [{type: C, requiredStatus: 'True'}]}"})
	if err := complaint(applyAs(t, c, "somebody-else", id, more), "spec.conditions", "conditions is immutable"); err != nil {
		t.Error(err)
	}
	theirs := edited(t, id, edits{"spec": "{taint: {effect: NoExecute}}"})
	if err := applyAs(t, c, "somebody-else", id, theirs); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict of owners, got %v", err)
	}
}
