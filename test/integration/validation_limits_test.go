package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// The largest rule that all limits allow works like any other.
func TestAPIServerStoresTheLargestRule(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	key := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 61)
	values := "[" + manifest.List(256, strings.Repeat("v", 60)+"%03d") + "]"
	body := edits{
		"spec.nodeSelector.matchExpressions": "[" + manifest.List(64, "{key: "+key+"%02d, operator: NotIn, values: "+values+"}") + "]",
		"spec.conditions":                    "[" + manifest.List(32, "{type: "+strings.Repeat("c", 314)+"%02d, requiredStatus: 'True'}") + "]",
		"metadata.annotations":               "{a: " + strings.Repeat("a", 255<<10) + "}",
	}.Rule(t, id)
	if err := post(t, c, body, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, id, testenv.Pool(id))
}

// The status lists up to 100 nodes with every condition of each. With the longest types it still fits into etcd.
func TestAPIServerStoresStatusWithTheLongestConditions(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	list := "[" + manifest.List(32, "{type: '"+strings.Repeat("🚀", 314)+"%02d', requiredStatus: 'True'}") + "]"
	if err := post(t, c, edits{"spec.conditions": list}.Rule(t, id), metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	const nodes = v1alpha1.MaxListedNodes
	for i := range nodes {
		c.Create(t, testenv.Node(fmt.Sprintf("%s-%03d", id, i), testenv.Pool(id)))
	}
	c.EventuallyRule(t, id, "enforced on all nodes", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == nodes
	})
}

// The longest name of a rule also fits into annotations, events and metrics.
func TestAPIServerStoresTheLongestName(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	long := id + strings.Repeat("a", 253-len(id))
	remove(t, c, long)
	if err := post(t, c, edits{"metadata.name": long}.Rule(t, id), metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, long, testenv.Pool(id))
}

// Only the manager writes status. A status in a new rule is dropped.
func TestAPIServerDropsStatusOfNewRules(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	status, err := json.Marshal(map[string]any{
		"observedGeneration": 99,
		"takenOverAt":        "2020-01-01T00:00:00Z",
		"appliedNodes":       []string{"nowhere"},
		"summary":            map[string]int{"selected": 7, "held": 7, "released": 0, "failed": 0},
		"conditions":         []metav1.Condition{{Type: "Hacked", Status: "True", Reason: "Hacked", LastTransitionTime: metav1.Now()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := post(t, c, edits{"status": string(status)}.Rule(t, id), metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, id, "enforced", testenv.Enforced)
	rule := ruleOf(t, c, id)
	got := rule.Status
	if got.ObservedGeneration != 1 || got.TakenOverAt.Before(&rule.CreationTimestamp) || got.AppliedNodes != nil ||
		got.Summary.Selected != 0 || meta.FindStatusCondition(got.Conditions, "Hacked") != nil {
		t.Errorf("the status of the request is not dropped: %+v", got)
	}
}

// As everywhere in Kubernetes, a label without a value has the empty value. If the API server dropped the label, the
// rule would select more nodes.
func TestAPIServerKeepsEmptyLabels(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	body := edits{"spec.nodeSelector.matchLabels": "{pool: '{id}', example.com/worker: }"}.Rule(t, id)
	if err := post(t, c, body, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	labels := ruleOf(t, c, id).Spec.NodeSelector.MatchLabels
	if value, ok := labels["example.com/worker"]; !ok || value != "" {
		t.Errorf("want example.com/worker with the empty value in %v", labels)
	}
}

// Bytes that are not UTF-8 become U+FFFD.
func TestAPIServerReplacesInvalidUTF8(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	body := strings.Replace(string(edits{}.Rule(t, id)), "example.com/NetworkReady", "Network\xffReady", 1)
	if err := post(t, c, []byte(body), metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, id, testenv.Pool(id))
	if got := ruleOf(t, c, id).Spec.Conditions[0].Type; got != "Network\ufffdReady" {
		t.Errorf("type is %q", got)
	}
}

// The CRD does not validate keys of matchLabels, because that exceeds the CEL cost limit. The manager rejects such a rule
// with a condition and an event, and does not change nodes. internal/core/noderule tests which keys are invalid.
func TestTheManagerRejectsARule(t *testing.T) {
	t.Parallel()
	const field, message = "spec.nodeSelector.matchLabels[{{ .Values.pool }}]", "must consist of alphanumeric characters"
	c, id := cluster(t), nameOf(t)
	c.Create(t, testenv.Node(id, testenv.Pool(id)))
	bad := "bad-" + id
	remove(t, c, bad)
	body := edits{"metadata.name": bad, "spec.nodeSelector.matchLabels": "{pool: '{id}', '{{ .Values.pool }}': a}"}.Rule(t, id)
	if err := post(t, c, body, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	rule := c.EventuallyRule(t, bad, "not accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid))
	condition := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionAccepted).Message
	if !strings.Contains(condition, field) || !strings.Contains(condition, message) {
		t.Errorf("want the field %q and %q in the message of the condition Accepted, got %q", field, message, condition)
	}
	if !testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted)(rule) || rule.Status.Summary.Selected != 0 {
		t.Errorf("the rule is enforced: %+v", rule.Status)
	}
	event := eventOf(t, c, rule, v1alpha1.EventInvalid)
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, field) || !strings.Contains(event.Note, message) {
		t.Errorf("want a warning with the message of the condition, got %s: %s", event.Type, event.Note)
	}
	wantEvents(t, c, rule, v1alpha1.EventInvalid)

	// The manager adds the taint of a later rule in the write that would have added the taint of the rejected rule.
	good := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Key += "-good" })
	c.Create(t, good)
	got := c.EventuallyNode(t, id, "held by the good rule", held(good))
	if testenv.HasTaint(got, testenv.TaintKey(id)) || owned(got, rule) {
		t.Errorf("the rejected rule changed the node: taints %v, annotations %v", got.Spec.Taints, got.Annotations)
	}
}
