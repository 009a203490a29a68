package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// valid is a manifest with nothing wrong in it. {id} stands for the test's own name.
const valid = `apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: {id}
spec:
  conditions:
  - type: example.com/NetworkReady
    requiredStatus: "True"
  taint:
    key: readiness.k8s.io/{id}
    value: pending
    effect: NoSchedule
  enforcementMode: continuous
  nodeSelector:
    matchLabels:
      pool: {id}
`

// edits change a manifest: dotted path to a value in YAML. Numbers are places in lists.
type edits map[string]string

// absent takes a field out.
const absent = "\x00absent"

// quoted is a text as a YAML value that is this text and nothing else.
func quoted(text string) string { return strconv.Quote(text) }

// bootstrapOnly is the other mode, for what does not go with it.
const bootstrapOnly = "bootstrap-only"

// edited is the valid manifest of this name, edited, as JSON.
func edited(t testing.TB, id string, changes edits) []byte {
	t.Helper()
	object := parsed(t, strings.ReplaceAll(valid, "{id}", id)).(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(changes)) { // a list before what is in it
		value := changes[path]
		steps := strings.Split(path, ".")
		last := steps[len(steps)-1]
		parent := child(t, object, steps[:len(steps)-1])
		fields, isMap := parent.(map[string]any)
		switch {
		case !isMap:
			place, _ := strconv.Atoi(last)
			parent.([]any)[place] = parsed(t, strings.ReplaceAll(value, "{id}", id))
		case value == absent:
			delete(fields, last)
		default:
			fields[last] = parsed(t, strings.ReplaceAll(value, "{id}", id))
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func child(t testing.TB, from any, steps []string) any {
	t.Helper()
	for _, step := range steps {
		switch parent := from.(type) {
		case map[string]any:
			if parent[step] == nil {
				parent[step] = map[string]any{}
			}
			from = parent[step]
		case []any:
			place, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			from = parent[place]
		default:
			t.Fatalf("%v has no fields", from)
		}
	}
	return from
}

func parsed(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q is not YAML: %v", text, err)
	}
	return value
}

const (
	rulesPath = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"
	asJSON    = "application/json"
	asYAML    = "application/yaml"
)

// rawClient sends bytes as they are.
func rawClient(t testing.TB, c *testenv.Cluster) rest.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return set.Discovery().RESTClient()
}

// post creates a rule from bytes, looked at as strictly as the caller says.
func post(t testing.TB, c *testenv.Cluster, body []byte, contentType, strictness string) error {
	t.Helper()
	return rawClient(t, c).Post().AbsPath(rulesPath).Param("fieldValidation", strictness).
		SetHeader("Content-Type", contentType).Body(body).Do(t.Context()).Error()
}

// remove deletes the rule of this name when the test ends, if there is one.
func remove(t testing.TB, c *testenv.Cluster, id string) {
	rule := &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: id}}
	t.Cleanup(func() { _ = c.Client.Delete(context.Background(), rule) }) // it may not exist
}

// refused are the cases of one table: each is an edit that the API server must refuse.
type refused map[string]struct {
	edits edits
	field string // the field that the answer must name
	says  string // what the answer must say about it
}

// run sends every case with strict and without field validation: what is wrong with a
// value does not depend on who checks for typos.
func (table refused) run(t *testing.T) {
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			body := edited(t, id, tc.edits)
			for _, strictness := range []string{metav1.FieldValidationStrict, metav1.FieldValidationIgnore} {
				if err := complaint(post(t, c, body, asJSON, strictness), tc.field, tc.says); err != nil {
					t.Errorf("%s: %v", strictness, err)
				}
			}
			wantNoRule(t, c, id)
		})
	}
}

// maxAnswer is what a refusal may take of a terminal: a hostile value must not come back whole.
const maxAnswer = 4096

// complaint is what is wrong with the API server's answer, which must be a refusal that
// names the field and says this about it.
func complaint(answer error, field, says string) error {
	var status apierrors.APIStatus
	switch {
	case answer == nil:
		return errors.New("was accepted")
	case !errors.As(answer, &status) || !apierrors.IsInvalid(answer):
		return fmt.Errorf("was not called invalid: %w", answer)
	case len(answer.Error()) > maxAnswer:
		return fmt.Errorf("has %d bytes: %.200s", len(answer.Error()), answer.Error())
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, says) {
			return nil
		}
	}
	return fmt.Errorf("does not say of %s: %s\ngot %w", field, says, answer)
}

func wantNoRule(t *testing.T, c *testenv.Cluster, id string) {
	t.Helper()
	err := c.Client.Get(t.Context(), client.ObjectKey{Name: id}, &v1alpha1.NodeReadinessRule{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("there is a rule: %v", err)
	}
}

// accepted are the cases of one table: each is an edit that is fine, however odd it looks.
type accepted map[string]struct {
	edits  edits
	labels map[string]string // of a node that the rule selects; pool={id} if nil
}

// run creates the rule of every case and shows that it holds and releases a node.
func (table accepted) run(t *testing.T) {
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			remove(t, c, id)
			if err := post(t, c, edited(t, id, tc.edits), asJSON, metav1.FieldValidationStrict); err != nil {
				t.Fatalf("was refused: %v", err)
			}
			if tc.labels == nil {
				tc.labels = testenv.Pool(id)
			}
			wantWorking(t, c, id, tc.labels)
		})
	}
}

// wantWorking shows that the rule is accepted, holds a node of these labels, and releases it
// when its conditions are as they must be.
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

// carries says whether the rule holds the node with exactly its taint.
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
