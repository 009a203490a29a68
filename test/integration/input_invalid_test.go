package integration_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// TestInputThatOnlyTheManagerCanRefuse: admission cannot afford to look into the keys of
// matchLabels. Such a rule is stored, does nothing, and says why.
func TestInputThatOnlyTheManagerCanRefuse(t *testing.T) {
	const labels = "spec.nodeSelector.matchLabels"
	tests := map[string]struct {
		key   string // of one more label
		field string
		says  string
	}{
		"a key with a space":         {"node pool", labels + "[node pool]", "must consist of alphanumeric characters, '-', '_' or '.'"},
		"a key of two slashes":       {"a/b/c", labels + "[a/b/c]", "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"},
		"a key with no name":         {"example.com/", labels + "[example.com/]", "name part must be non-empty"},
		"a key with no prefix":       {"/pool", labels + "[/pool]", "prefix part must be non-empty"},
		"a key with capital prefix":  {"Example.com/pool", labels + "[Example.com/pool]", "prefix part a lowercase RFC 1123 subdomain"},
		"a key of 64 chars":          {strings.Repeat("a", 64), labels, "must be no more than 63"},
		"a key of 317 chars":         {" " + strings.Repeat("a", 316), labels, "must be no more than 63"},
		"a key out of its directory": {"../../pool", labels + "[../../pool]", "must consist of alphanumeric characters"},
		"a key with emoji":           {"🚀", labels + "[🚀]", "must consist of alphanumeric characters"},
		"a key with a newline":       {"pool\n", labels + "[pool\n]", "must consist of alphanumeric characters"},
		"a key with NUL":             {"po\x00ol", labels + "[po\x00ol]", "must consist of alphanumeric characters"},
		"a key with printf verbs":    {"%s%d%n", labels + "[%s%d%n]", "must consist of alphanumeric characters"},
		"a key with CEL":             {"' || true || '", labels + "[' || true || ']", "must consist of alphanumeric characters"},
		"a key with a template":      {"{{ .Values.pool }}", labels + "[{{ .Values.pool }}]", "must consist of alphanumeric characters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			c.Create(t, testenv.Node(id, testenv.Pool(id)))
			bad := "bad-" + id
			remove(t, c, bad)
			body := edited(t, bad, edits{labels: "{pool: " + id + ", " + quoted(tc.key) + ": a}"})
			if err := post(t, c, body, asJSON, metav1.FieldValidationStrict); err != nil {
				t.Fatalf("was refused: %v", err)
			}
			wantInvalid(t, c, bad, tc.field, tc.says)
			wantIdle(t, c, bad, id)
		})
	}
}

// wantInvalid waits until the rule says, in its status and in an event, that this field is
// wrong and why.
func wantInvalid(t *testing.T, c *testenv.Cluster, id, field, says string) {
	t.Helper()
	rule := c.EventuallyRule(t, id, "not accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid))
	message := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionAccepted).Message
	if !strings.Contains(message, field) || !strings.Contains(message, says) {
		t.Errorf("the condition Accepted does not say of %s: %s\ngot %s", field, says, message)
	}
	if !testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted)(rule) || rule.Status.Summary.Selected != 0 {
		t.Errorf("it seems to do something: %+v", rule.Status)
	}
	event := eventOf(t, c, rule, v1alpha1.EventInvalid)
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, field) || !strings.Contains(event.Note, says) {
		t.Errorf("want a warning that says what the condition says, got %s: %s", event.Type, event.Note)
	}
	wantEvents(t, c, rule, v1alpha1.EventInvalid)
}

// wantIdle shows that the bad rule leaves the node alone: another rule, made later, is
// enforced on the node, in the same write that would have had the bad rule's taint.
func wantIdle(t *testing.T, c *testenv.Cluster, bad, node string) {
	t.Helper()
	good := testenv.Rule(node)
	c.Create(t, good)
	got := c.EventuallyNode(t, node, "held by the good rule", held(good))
	if testenv.HasTaint(got, testenv.TaintKey(bad)) || owned(got, ruleOf(t, c, bad)) {
		t.Errorf("the bad rule touched the node: taints %v, annotations %v", got.Spec.Taints, got.Annotations)
	}
}

// A label with nothing after its colon has the empty value, as everywhere in Kubernetes. It
// is not left out: the rule would select more nodes than its author wrote.
func TestInputOfALabelWithNothingAfterItsColon(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	if err := post(t, c, edited(t, id, edits{"spec.nodeSelector.matchLabels": "{pool: '{id}', example.com/worker: }"}), asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatalf("was refused: %v", err)
	}
	labels := ruleOf(t, c, id).Spec.NodeSelector.MatchLabels
	if value, ok := labels["example.com/worker"]; !ok || value != "" {
		t.Errorf("want example.com/worker with the empty value among %v", labels)
	}
}

// Bytes that are no text become U+FFFD, which every consumer of the type can show.
func TestInputOfInvalidUTF8IsMended(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	body := strings.Replace(string(edited(t, id, nil)), "example.com/NetworkReady", "Network\xffReady", 1)
	if err := post(t, c, []byte(body), asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, id, testenv.Pool(id))
	if got := ruleOf(t, c, id).Spec.Conditions[0].Type; got != "Network\ufffdReady" {
		t.Errorf("type is %q", got)
	}
}
