package integration_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// A test that reuses the control plane of another test finds none of its objects, with or without finalizers, no
// policy that the API server still enforces, and no request in the audit log. Changed objects are restored.
//
// This test does not run in parallel, because a parallel test could reuse the control plane first.
func TestAControlPlaneIsAsNewForTheNextTest(t *testing.T) {
	name := nameOf(t)
	for what, leave := range map[string]func(*testing.T, *testenv.Cluster) error{
		"a rule, policies, finalizers": func(t *testing.T, c *testenv.Cluster) error { return leaveObjects(t, c, name) },
		"a deleted CRD":                func(t *testing.T, c *testenv.Cluster) error { return deleteCRD(t, c, name) },
		"a restart, and a scheduler": func(t *testing.T, c *testenv.Cluster) error {
			return errors.Join(c.StartScheduler(t.Context()), c.KillAPIServer(), c.StartAPIServer(t.Context()))
		},
	} {
		var first *testenv.Cluster
		t.Run(what, func(t *testing.T) {
			first = testenv.StartCluster(t)
			if err := leave(t, first); err != nil {
				t.Fatal(err)
			}
		})
		t.Run("after "+what, func(t *testing.T) {
			c := testenv.StartCluster(t)
			if c.ControlPlane != first.ControlPlane {
				t.Fatal("the test has another control plane, want that of the first test")
			}
			wantAsNew(t, c, name)
		})
	}
}

func leaveObjects(t *testing.T, c *testenv.Cluster, name string) error {
	t.Helper()
	if err := c.InstallPolicies(t.Context()); err != nil {
		return err
	}
	_, stop, err := c.RunManager()
	if err != nil {
		return err
	}
	defer stop() //nolint:errcheck // the test needs only that it ran
	node := testenv.Node(name, testenv.Pool(name))
	node.Finalizers = []string{"example.com/stays"}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name, Finalizers: node.Finalizers}}, testenv.Rule(name), node,
	} {
		if err := c.Client.Create(t.Context(), obj); err != nil {
			return err
		}
	}
	c.EventuallyRule(t, name, "nodes created with the taint", covered)
	return nil
}

// deleteCRD deletes the CRD while a rule has a finalizer, and returns when the CRD is terminating.
func deleteCRD(t *testing.T, c *testenv.Cluster, name string) error {
	t.Helper()
	rule := testenv.Rule(name)
	rule.Finalizers = []string{"example.com/stays"}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nodereadinessrules." + v1alpha1.GroupVersion.Group}}
	if err := errors.Join(c.Client.Create(t.Context(), rule), c.Client.Delete(t.Context(), crd)); err != nil {
		return err
	}
	testenv.Eventually(t, "the CRD to be terminating", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		if !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Terminating && c.Status == apiextensionsv1.ConditionTrue
		}) {
			return errors.New("not yet")
		}
		return nil
	})
	return nil
}

func wantAsNew(t *testing.T, c *testenv.Cluster, name string) {
	t.Helper()
	for _, gone := range []client.Object{&corev1.Namespace{}, &v1alpha1.NodeReadinessRule{}} {
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: name}, gone); !apierrors.IsNotFound(err) {
			t.Errorf("%T exists (%v)", gone, err)
		}
	}
	node := testenv.Node(name, testenv.Pool(name)) // the policy of the deleted rule selects it
	for _, obj := range []client.Object{node, testenv.Rule(name)} {
		if err := c.Client.Create(t.Context(), obj); err != nil {
			t.Error(err)
		}
	}
	if testenv.HasTaint(node, testenv.TaintKey(name)) {
		t.Error("the API server enforces a policy of the first test")
	}
	if requests := c.Requests(t, testenv.ManagerUser); len(requests) > 0 {
		t.Errorf("%d requests of the manager of the first test, e.g. %+v", len(requests), requests[0])
	}
}
