package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// wantRefusal checks that the answer has this code and contains this text.
func wantRefusal(t *testing.T, answer error, code int32, says string) {
	t.Helper()
	status, ok := answer.(apierrors.APIStatus)
	switch {
	case !ok:
		t.Errorf("was not refused by the API server: %v", answer)
	case status.Status().Code != code || !strings.Contains(answer.Error(), says):
		t.Errorf("want %d and %q, got %d: %.1000v", code, says, status.Status().Code, answer)
	case len(answer.Error()) > maxAnswer:
		t.Errorf("the answer has %d bytes", len(answer.Error()))
	}
}

// TestInputOfUnknownFields: a typo is refused where the client asks for it, as kubectl
// does, and dropped where it does not; it never comes to mean something.
func TestInputOfUnknownFields(t *testing.T) {
	tests := map[string]edits{
		"spec.conditionpolicy":                        {"spec.conditionpolicy": "anyOf"},
		"spec.requiredDaemonSets":                     {"spec.requiredDaemonSets": "[{name: nvidia-device-plugin}]"},
		"spec.conditions[0].status":                   {"spec.conditions.0.status": "'True'"},
		"spec.conditions[0].__proto__":                {"spec.conditions.0.__proto__": "{polluted: true}"},
		"spec.taint.operator":                         {"spec.taint.operator": "Exists"},
		"spec.nodeSelector.matchFields":               {"spec.nodeSelector.matchFields": "[{key: metadata.name, operator: In, values: [a]}]"},
		"spec.nodeSelector.nodeSelectorTerms":         {"spec.nodeSelector.nodeSelectorTerms": "[]"},
		"spec.nodeSelector.matchExpressions[0].value": expression("{key: pool, operator: Exists, value: a}"),
		"status.phase":                                {"status.phase": "Released"},
		"metadata.lables":                             {"metadata.lables": "{team: a}"},
		"data":                                        {"data": "{a: b}"},
	}
	for field, changes := range tests {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			body := edited(t, id, changes)
			wantRefusal(t, post(t, c, body, asJSON, metav1.FieldValidationStrict), http.StatusBadRequest, `unknown field "`+field+`"`)
			wantNoRule(t, c, id)
			if err := post(t, c, body, asJSON, metav1.FieldValidationIgnore); err != nil {
				t.Fatalf("was refused: %v", err)
			}
			wantWorking(t, c, id, testenv.Pool(id))
		})
	}
}

func TestInputOfBadEnvelopesIsRefused(t *testing.T) {
	tests := map[string]struct {
		edits edits
		code  int32
		says  string
	}{
		"apiVersion missing":        {edits{"apiVersion": absent}, http.StatusBadRequest, "does not match the expected API version (readiness.node.x-k8s.io/v1alpha1)"},
		"apiVersion not served":     {edits{"apiVersion": "readiness.node.x-k8s.io/v1"}, http.StatusBadRequest, `NodeReadinessRule in version "v1" cannot be handled`},
		"apiVersion of another API": {edits{"apiVersion": "node.k8s.io/v1alpha1"}, http.StatusBadRequest, "does not match the expected API version (readiness.node.x-k8s.io/v1alpha1)"},
		"kind missing":              {edits{"kind": absent}, http.StatusBadRequest, "Kind"},
		"kind another":              {edits{"kind": "NodeReadinessGate"}, http.StatusUnprocessableEntity, "must be NodeReadinessRule"},
		"kind in lower case":        {edits{"kind": "nodereadinessrule"}, http.StatusUnprocessableEntity, "must be NodeReadinessRule"},
		"metadata missing":          {edits{"metadata": absent}, http.StatusUnprocessableEntity, "name or generateName is required"},
		"metadata a text":           {edits{"metadata": "'{id}'"}, http.StatusBadRequest, "ObjectMeta"},
		"name missing":              {edits{"metadata.name": absent}, http.StatusUnprocessableEntity, "name or generateName is required"},
		"name empty":                {edits{"metadata.name": "''"}, http.StatusUnprocessableEntity, "name or generateName is required"},
		"name with capitals":        {edits{"metadata.name": "'{id}-X'"}, http.StatusUnprocessableEntity, "metadata.name: Invalid value"},
		"name with an underscore":   {edits{"metadata.name": "'{id}_x'"}, http.StatusUnprocessableEntity, "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"},
		"name with a slash":         {edits{"metadata.name": "'{id}/../x'"}, http.StatusUnprocessableEntity, "metadata.name: Invalid value"},
		"name with emoji":           {edits{"metadata.name": "'{id}🚀'"}, http.StatusUnprocessableEntity, "metadata.name: Invalid value"},
		"name of 254 chars":         {edits{"metadata.name": strings.Repeat("a", 254)}, http.StatusUnprocessableEntity, "metadata.name: Invalid value"},
		"name a number":             {edits{"metadata.name": "5"}, http.StatusBadRequest, "ObjectMeta.name of type string"},
		"a label with a space":      {edits{"metadata.labels": "{a: 'b c'}"}, http.StatusUnprocessableEntity, "metadata.labels: Invalid value"},
		"a finalizer with no name":  {edits{"metadata.finalizers": "['clean up']"}, http.StatusUnprocessableEntity, "metadata.finalizers"},
		"annotations of 300 KiB":    {edits{"metadata.annotations": "{a: " + strings.Repeat("a", 300<<10) + "}"}, http.StatusUnprocessableEntity, "metadata.annotations: Too long"},
		"a resourceVersion":         {edits{"metadata.resourceVersion": "'5'"}, http.StatusInternalServerError, "resourceVersion should not be set on objects to be created"},
		"more than 3 MiB":           {edits{"spec.conditions.0.type": strings.Repeat("a", 3<<20)}, http.StatusRequestEntityTooLarge, "Request entity too large"},
		"2 MiB in a wrong place":    {edits{"spec.note": strings.Repeat("a", 2<<20)}, http.StatusBadRequest, `unknown field "spec.note"`},
		"50,000 conditions":         {edits{"spec.conditions": "[" + strings.Repeat("{type: a, requiredStatus: 'True'},", 50_000) + "]"}, http.StatusUnprocessableEntity, "spec.conditions: Too many"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			wantRefusal(t, post(t, c, edited(t, id, tc.edits), asJSON, metav1.FieldValidationStrict), tc.code, tc.says)
			wantNoRule(t, c, id)
		})
	}
}

func TestInputOfBadBytesIsRefused(t *testing.T) {
	const bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" +
		"b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n" +
		"c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n" +
		"d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n" +
		"e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n" +
		"f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n" +
		"g: [*f, *f, *f, *f, *f, *f, *f, *f, *f, *f]\n"
	tests := map[string]struct {
		body, contentType string
		code              int32
		says              string
	}{
		"nothing at all":       {"", asJSON, http.StatusBadRequest, ""},
		"null":                 {"null", asJSON, http.StatusBadRequest, ""},
		"a list":               {"[]", asJSON, http.StatusBadRequest, ""},
		"half an object":       {`{"apiVersion": "readiness.node.x-k8s.io/v1alpha1", "kind"`, asJSON, http.StatusBadRequest, ""},
		"10,000 objects deep":  {strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001), asJSON, http.StatusBadRequest, ""},
		"a YAML bomb":          {valid + bomb, asYAML, http.StatusBadRequest, "excessive aliasing"},
		"a field twice":        {valid + "kind: NodeReadinessRule\n", asYAML, http.StatusBadRequest, `key "kind" already set in map`},
		"the taint twice":      {strings.Replace(valid, "    value: pending", "    value: pending\n    value: done", 1), asYAML, http.StatusBadRequest, `key "value" already set in map`},
		"YAML with a tab":      {strings.Replace(valid, "  taint", "\ttaint", 1), asYAML, http.StatusBadRequest, "found character that cannot start any token"},
		"a type nobody speaks": {valid, "application/xml", http.StatusUnsupportedMediaType, "the body of the request was in an unknown format"},
		"binary":               {"\x00\xff\xfe\x80", asJSON, http.StatusBadRequest, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			body := []byte(strings.ReplaceAll(tc.body, "{id}", id))
			wantRefusal(t, post(t, c, body, tc.contentType, metav1.FieldValidationStrict), tc.code, tc.says)
			wantNoRule(t, c, id)
		})
	}
}

func TestInputOfOddEnvelopesIsAccepted(t *testing.T) {
	accepted{
		"labels and annotations":        {edits: edits{"metadata.labels": "{team: net}", "metadata.annotations": "{note: \"'; DROP TABLE rules; -- 🚀\"}"}},
		"no creationTimestamp":          {edits: edits{"metadata.creationTimestamp": "null"}},
		"a UID that is not its":         {edits: edits{"metadata.uid": "00000000-0000-0000-0000-000000000000", "metadata.generation": "99"}},
		"a namespace, which is dropped": {edits: edits{"metadata.namespace": "kube-system"}},
		"our finalizer from start":      {edits: edits{"metadata.finalizers": "[readiness.node.x-k8s.io/cleanup-taints]"}},
	}.run(t)
}

// A rule's name goes into annotations, events and metrics: the longest must fit there too.
func TestInputOfTheLongestNameIsAccepted(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	long := id + strings.Repeat("a", 253-len(id))
	remove(t, c, long)
	body := bytes.Replace(edited(t, id, nil), []byte(fmt.Sprintf(`"name":%q`, id)), []byte(fmt.Sprintf(`"name":%q`, long)), 1)
	if err := post(t, c, body, asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	wantWorking(t, c, long, testenv.Pool(id))
}

// Only the manager writes status: one that comes with a new rule is dropped, so nobody can
// claim that a rule was taken over long ago.
func TestInputOfStatusIsDropped(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	status, err := json.Marshal(map[string]any{
		"observedGeneration": 99,
		"takenOverAt":        "2020-01-01T00:00:00Z",
		"appliedNodes":       []string{"nowhere"},
		"summary":            map[string]int{"selected": 7, "held": 7, "released": 0, "failed": 0},
		"conditions": []metav1.Condition{{Type: "Hacked", Status: "True", Reason: "Hacked",
			LastTransitionTime: metav1.Now()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := post(t, c, edited(t, id, edits{"status": string(status)}), asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, id, "with a status of the manager's", testenv.Enforced)
	var rule v1alpha1.NodeReadinessRule
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: id}, &rule); err != nil {
		t.Fatal(err)
	}
	got := rule.Status
	if got.ObservedGeneration != 1 || got.TakenOverAt.Before(&rule.CreationTimestamp) || got.AppliedNodes != nil ||
		got.Summary.Selected != 0 || meta.FindStatusCondition(got.Conditions, "Hacked") != nil {
		t.Errorf("something of the status sent is left: %+v", got)
	}
}
