package podgate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// manifest returns a rule with this name and spec, as YAML.
func manifest(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	rule := &unstructured.Unstructured{}
	rule.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PodReadinessRule"))
	rule.SetName(name)
	data, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatalf("%q is not YAML: %v", spec, err)
	}
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	rule.Object["spec"] = content
	return rule
}

// component returns a spec with one component, which has a name and these fields.
func component(fields string) string { return "components: [{name: a, " + fields + "}]" }

// with returns a valid spec with these additional fields.
func with(fields string) string {
	return "components: [{name: a, podCondition: {type: example.com/a}}]\n" + fields
}

// internal/plugin/lint tests every validation of the CRD with the API server's code. An API server with the CRD returns
// the same errors, and sets the default gate.
func TestAPIServerValidatesPodRules(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	for what, tc := range map[string]struct{ spec, field, says string }{
		"required":          {"gate: example.com/a", "spec.components", "Required value"},
		"list key":          {"components: [{name: a, reach: {}}, {name: a, reach: {}}]", "spec.components[1]", "Duplicate value"},
		"its value":         {"components: [{name: a, reach: {}}, {name: a, reach: {}}]", "spec.components[1]", `{"name":"a"}`},
		"enum":              {with("closePolicy: Sometimes"), "spec.closePolicy", `supported values: "Never", "OnNotReady"`},
		"bound":             {with("deadlineSeconds: 0"), "spec.deadlineSeconds", "greater than or equal to 1"},
		"CEL of a text":     {component("http: {url: 'http://127.0.0.1:80@example.com/'}"), "spec.components[0].http.url", "url must have the host 127.0.0.1, localhost or [::1]"},
		"CEL of an object":  {component("reach: {}, podCondition: {type: a}"), "spec.components[0]", "a component must have exactly one of"},
		"CEL of two fields": {with("gate: example.com/a"), "spec.components", "podCondition.type must not be Ready or the gate of the rule"},
	} {
		err := c.Client.Create(t.Context(), manifest(t, testenv.NameOf(t), tc.spec), client.DryRunAll)
		if err := testenv.CheckInvalid(err, tc.field, tc.says); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	rule := manifest(t, testenv.NameOf(t), with("podSelector: {matchLabels: {app: }}"))
	if err := c.Client.Create(t.Context(), rule, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatal(err)
	}
	if gate, _, _ := unstructured.NestedString(rule.Object, "spec", "gate"); gate != v1alpha1.DefaultGate {
		t.Errorf("the gate is %q", gate)
	}
}

// Pods keep the gate that they were created with.
func TestTheGateOfARuleIsImmutable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	s.Create(t, rule)
	rule = s.wantRule(rule, "looked at", func(r *v1alpha1.PodReadinessRule) bool { return len(r.Finalizers) > 0 })
	base := rule.DeepCopy()
	rule.Spec.Gate += "-2"
	err := s.Client.Patch(t.Context(), rule, client.MergeFrom(base))
	if err := testenv.CheckInvalid(err, "spec.gate", "gate is immutable, because the gates of a pod cannot change: delete this rule and create one with the gate you want"); err != nil {
		t.Error(err)
	}
}

// The manager rejects what the CRD cannot check with a condition, and does not enforce the rule.
func TestTheManagerRejectsAPodRule(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.rule("web")
	rule.Spec.PodSelector = selector("not a key", "a")
	if err := s.Client.Create(t.Context(), rule); err != nil {
		if refused := testenv.CheckInvalid(err, "spec.podSelector.matchLabels", "label key"); refused != nil {
			t.Error(refused)
		}
		return
	}
	t.Cleanup(func() { _ = s.Client.Delete(context.Background(), rule) })
	got := s.wantRule(rule, "not accepted", is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid))
	if message := got.Status.Conditions[0].Message; !strings.Contains(message, "spec.podSelector") || !strings.Contains(message, "not a key") {
		t.Errorf("the message does not name the error: %s", message)
	}
	s.wantRule(rule, "not enforced", is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted))
}
