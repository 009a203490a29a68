package testenv

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WantStored checks that the API server has stored every field of an applied object.
func (c *Cluster) WantStored(t testing.TB, applied *unstructured.Unstructured, namespace string) {
	t.Helper()
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(applied.GroupVersionKind())
	if applied.GetNamespace() != "" {
		namespace = applied.GetNamespace()
	}
	key := client.ObjectKey{Namespace: namespace, Name: applied.GetName()}
	if namespaced, err := c.Client.IsObjectNamespaced(applied); err == nil && !namespaced {
		key.Namespace = ""
	}
	if err := c.Client.Get(t.Context(), key, stored); err != nil {
		t.Errorf("%s %s: %v", applied.GetKind(), applied.GetName(), err)
		return
	}
	for _, field := range lost(applied.Object, stored.Object, "") {
		t.Errorf("%s %s: stored without, or with another value: %s", applied.GetKind(), applied.GetName(), field)
	}
}

// lost returns the fields of applied that stored does not have with the same value.
func lost(applied, stored any, path string) []string {
	var all []string
	switch applied := applied.(type) {
	case nil:
	case map[string]any:
		has, _ := stored.(map[string]any)
		if stored == nil && len(applied) > 0 {
			return []string{path}
		}
		for key, value := range applied {
			all = append(all, lost(value, has[key], path+"."+key)...)
		}
	case []any:
		has, _ := stored.([]any)
		for i, value := range applied {
			if i >= len(has) {
				return append(all, fmt.Sprintf("%s[%d:]", path, i))
			}
			all = append(all, lost(value, has[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if fmt.Sprint(applied) != fmt.Sprint(stored) && !sameQuantity(applied, stored) && (stored != nil || !isZero(applied)) {
			return []string{fmt.Sprintf("%s: %v (stored: %v)", path, applied, stored)}
		}
	}
	return all
}

// isZero reports whether a value may be omitted, as false or 0.
func isZero(value any) bool { return value == false || value == "" || fmt.Sprint(value) == "0" }

func sameQuantity(a, b any) bool {
	x, err1 := resource.ParseQuantity(fmt.Sprint(a))
	y, err2 := resource.ParseQuantity(fmt.Sprint(b))
	return err1 == nil && err2 == nil && x.Cmp(y) == 0
}
