package admission_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

func deleted(kind schema.GroupVersionKind, resource, namespace string, object runtime.Object) request {
	return request{kind: kind, resource: resource, namespace: namespace, operation: apiadmission.Delete, old: object}
}

func finalizers(names ...string) func(*v1alpha1.NodeReadinessRule) {
	return func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = names }
}

func TestRemovingAPartThatRulesNeedIsAWarning(t *testing.T) {
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	meta := metav1.ObjectMeta{Name: "n"}
	cases := map[string]struct {
		request request
		warned  bool
	}{
		"the manager":                   {request: deleted(deployment, "deployments", admission.ManagerNamespace, &appsv1.Deployment{ObjectMeta: meta}), warned: true},
		"another of its name elsewhere": {request: deleted(deployment, "deployments", "other", &appsv1.Deployment{ObjectMeta: meta})},
		"its namespace":                 {request: deleted(corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", admission.ManagerNamespace, &corev1.Namespace{ObjectMeta: meta}), warned: true},
		"the CRD":                       {request: deleted(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", "", node()), warned: true},
	}
	v := newValidator(t, admission.Removal().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.request.params = untyped(t, rule("let-go", finalizers("example.com/keep")))
			wantEqual(t, "warning for a rule that is not enforced", v.refuses(t, c.request), nil)
			c.request.params = untyped(t, rule("network", finalizers("example.com/keep", v1alpha1.Finalizer)))
			got := v.refuses(t, c.request)
			if (len(got) > 0) != c.warned {
				t.Errorf("warned: got %q, want %t", got, c.warned)
			}
			if c.warned && !strings.Contains(got[0], "kubectl delete nrr --all") {
				t.Errorf("the warning does not say what to do: %s", got[0])
			}
		})
	}
}

// It warns and refuses nothing: an administrator has the last word.
func TestRemovalIsNeverRefused(t *testing.T) {
	actions := admission.RemovalBinding().Spec.ValidationActions
	if len(actions) != 1 || actions[0] != "Warn" {
		t.Errorf("got %v", actions)
	}
}
