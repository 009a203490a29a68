package integration_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// internal/plugin/lint tests every validation of the CRD with the API server's own code. These tests check one case per
// kind of validation on an API server with the CRD.

type edits = manifest.Edits

const rulesPath = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"

// rawClient sends request bodies unchanged.
func rawClient(t testing.TB, c *testenv.Cluster) rest.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return set.Discovery().RESTClient()
}

// post creates a rule from JSON with this field validation.
func post(t testing.TB, c *testenv.Cluster, body []byte, strictness string) error {
	t.Helper()
	return rawClient(t, c).Post().AbsPath(rulesPath).Param("fieldValidation", strictness).
		SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
}

// remove deletes the rule of this name when the test ends, if there is one.
func remove(t testing.TB, c *testenv.Cluster, id string) {
	rule := &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: id}}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), rule) }) // it may not exist
}

func ruleOf(t *testing.T, c *testenv.Cluster, id string) *v1alpha1.NodeReadinessRule {
	t.Helper()
	var rule v1alpha1.NodeReadinessRule
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: id}, &rule); err != nil {
		t.Fatal(err)
	}
	return &rule
}

func wantNoRule(t *testing.T, c *testenv.Cluster, id string) {
	t.Helper()
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: id}, &v1alpha1.NodeReadinessRule{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the rule %s exists: %v", id, err)
	}
}

// The result does not depend on the field validation that the client requests.
func TestAPIServerRejectsRules(t *testing.T) {
	for name, tc := range map[string]struct {
		edits          edits
		field, message string
	}{
		"type":             {edits{"spec.taint": "readiness.k8s.io/a=pending:NoSchedule"}, "spec.taint", "must be of type object"},
		"required":         {edits{"spec.conditions": "null"}, "spec.conditions", "Required value"},
		"maximum length":   {edits{"spec.conditions.0.type": strings.Repeat("a", 1<<20)}, "spec.conditions[0].type", "may not be more than 316"},
		"maximum items":    {edits{"spec.nodeSelector.matchLabels": "{" + manifest.List(65, "l%d: a") + "}"}, "spec.nodeSelector.matchLabels", "must have at most 64 items"},
		"bound":            {edits{"spec.minReadySeconds": "-1"}, "spec.minReadySeconds", "greater than or equal to 0"},
		"enum":             {edits{"spec.conditions.0.requiredStatus": "'true'"}, "spec.conditions[0].requiredStatus", `supported values: "True", "False", "Unknown"`},
		"format":           {edits{"spec.taint.timeAdded": "yesterday"}, "spec.taint.timeAdded", "must be of type date-time"},
		"list key":         {edits{"spec.dependsOn": "[a, a]"}, "spec.dependsOn[1]", "Duplicate value"},
		"CEL of a text":    {edits{"spec.taint.key": "example.com/{id}"}, "spec.taint.key", "taint key must start with 'readiness.k8s.io/'"},
		"CEL of a number":  {edits{"spec.maxUnavailable": "101%"}, "spec.maxUnavailable", "a percentage from 0% to 100%, e.g. 10%"},
		"CEL of an entry":  {edits{"spec.nodeSelector.matchLabels": "{pool: a b}"}, "spec.nodeSelector.matchLabels[pool]", "label value must be empty or consist of"},
		"CEL of an item":   {edits{"spec.nodeSelector.matchExpressions": "[{key: a, operator: In}]"}, "spec.nodeSelector.matchExpressions[0].values", "values must not be empty"},
		"CEL of an object": {edits{"spec.nodeSelector": "{}"}, "spec.nodeSelector", "nodeSelector must not be empty"},
		"CEL of two fields": {edits{"spec.conditionPolicy": "anyOf", "spec.enforcementMode": "bootstrap-only"},
			"spec.conditionPolicy", "anyOf cannot be used with enforcementMode bootstrap-only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			for _, strictness := range []string{metav1.FieldValidationStrict, metav1.FieldValidationIgnore} {
				if err := testenv.CheckInvalid(post(t, c, tc.edits.Rule(t, id), strictness), tc.field, tc.message); err != nil {
					t.Errorf("%s: %v", strictness, err)
				}
			}
			wantNoRule(t, c, id)
		})
	}
}

// With strict field validation, which kubectl requests, an unknown field is an error. Otherwise the field is dropped.
func TestAPIServerRejectsUnknownFields(t *testing.T) {
	for field, changes := range map[string]edits{
		"spec.conditions[0].status": {"spec.conditions.0.status": "'True'"},
		"metadata.lables":           {"metadata.lables": "{team: a}"},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			body := changes.Rule(t, id)
			var status apierrors.APIStatus
			if err := post(t, c, body, metav1.FieldValidationStrict); !errors.As(err, &status) || status.Status().Code != http.StatusBadRequest ||
				!strings.Contains(err.Error(), `unknown field "`+field+`"`) {
				t.Errorf("got %v", err)
			}
			wantNoRule(t, c, id)
			if err := post(t, c, body, metav1.FieldValidationIgnore); err != nil {
				t.Fatal(err)
			}
			wantWorking(t, c, id, testenv.Pool(id))
		})
	}
}

// Rules with unusual values hold and release a node like any other.
func TestAPIServerAcceptsRules(t *testing.T) {
	long := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 63)
	for name, tc := range map[string]struct {
		edits  edits
		labels map[string]string // of a selected node; nil: pool={id}
	}{
		"no edit":       {},
		"hostile texts": {edits: edits{"spec.conditions": "[" + hostileConditions() + "]"}},
		"nulls": {edits: edits{"spec.conditionPolicy": "null", "spec.conditions.0.defaultStatus": "null", "spec.dryRun": "null", "spec.taint.value": "null",
			"spec.nodeSelector.matchExpressions": "null", "metadata.creationTimestamp": "null"}},
		"all operators": {edits: edits{"spec.nodeSelector.matchExpressions": "[{key: pool, operator: Exists}, {key: pool, operator: In, values: [{id}]}, " +
			"{key: pool, operator: NotIn, values: [b]}, {key: a, operator: DoesNotExist}]"}},
		"the longest label": {edits{"spec.nodeSelector.matchLabels": "{" + long + ": ''}"}, map[string]string{long: ""}},
		"the longest taint": {edits: edits{"spec.taint.key": "startup-taint.cluster-autoscaler.kubernetes.io/" + strings.Repeat("a", 63)}},
		"metadata that the API server sets": {edits: edits{"metadata.uid": "00000000-0000-0000-0000-000000000000", "metadata.generation": "99",
			"metadata.namespace": "kube-system", "metadata.finalizers": "[" + v1alpha1.Finalizer + "]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			if err := post(t, c, tc.edits.Rule(t, id), metav1.FieldValidationStrict); err != nil {
				t.Fatal(err)
			}
			if tc.labels == nil {
				tc.labels = testenv.Pool(id)
			}
			wantWorking(t, c, id, tc.labels)
		})
	}
}

func hostileConditions() string {
	var list []string
	for _, conditionType := range []string{
		strings.Repeat("🚀", 316), "\u202eydaeR\u202c/מוכן", "Network\nReady", "Network\x00Ready", "$(reboot); `reboot` | tee ../../etc/passwd",
		"'; DROP TABLE nodes; --", `' || true || self.conditions.exists(c, c.type == "`, "{{ .Values.condition }}", "%s%d%n%!v(MISSING)", "<script>alert(1)</script>",
	} {
		list = append(list, "{requiredStatus: 'True', type: "+manifest.Text(conditionType)+"}")
	}
	return strings.Join(list, ", ")
}

// wantWorking checks that the rule is accepted, holds a node with these labels, and releases it
// when its conditions are met.
func wantWorking(t *testing.T, c *testenv.Cluster, id string, labels map[string]string) {
	t.Helper()
	rule := c.EventuallyRule(t, id, "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	node := testenv.Node("node-"+nameOf(t), labels)
	c.CreateNode(t, node, "")
	c.EventuallyNode(t, node.Name, "held", carries(rule))
	for _, requirement := range rule.Spec.Conditions {
		c.SetCondition(t, node.Name, requirement.Type, requirement.RequiredStatus)
	}
	c.EventuallyNode(t, node.Name, "released", free(rule))
	c.EventuallyRule(t, id, "enforced", testenv.Enforced)
}

// carries reports whether the rule holds the node with exactly its taint.
func carries(rule *v1alpha1.NodeReadinessRule) func(*corev1.Node) bool {
	return func(n *corev1.Node) bool {
		for _, taint := range n.Spec.Taints {
			if taint.Key == rule.Spec.Taint.Key && taint.Value == rule.Spec.Taint.Value && taint.Effect == rule.Spec.Taint.Effect {
				return owned(n, rule)
			}
		}
		return false
	}
}
