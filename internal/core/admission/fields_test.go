package admission_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/admission"
)

// kept are the fields that the API server keeps itself.
var kept = []string{"ObjectMeta.ManagedFields", "ObjectMeta.ResourceVersion", "ObjectMeta.Generation"}

func TestManagerPolicyIgnoresFieldsThatTheAPIServerKeeps(t *testing.T) {
	v := newValidator(t, admission.Manager().Spec)
	wantEqual(t, "refused", v.refuses(t, updated(managed(), managed(written)).by(admission.ManagerUser)), nil)
}

// written is what the API server does to a node with every write.
func written(n *corev1.Node) {
	n.ResourceVersion, n.Generation, n.ManagedFields = "2", 2, []metav1.ManagedFieldsEntry{{Manager: "manager"}}
}

func TestEveryFieldOfANodeIsProtected(t *testing.T) {
	// The manager may change two fields in part, and cannot change the status. Some other fields cannot be changed by any
	// account: TestServerKeepsFieldsThatThePolicyDoesNotCheck checks this with an API server.
	free := append([]string{"Spec.Taints", "ObjectMeta.Annotations", "Status", "ObjectMeta.Name", "ObjectMeta.Namespace", "ObjectMeta.UID",
		"ObjectMeta.CreationTimestamp", "ObjectMeta.DeletionTimestamp", "ObjectMeta.DeletionGracePeriodSeconds"}, kept...)
	wantProtected(t, newValidator(t, admission.Manager().Spec), free, func(old, n *corev1.Node) request { return updated(old, n).by(admission.ManagerUser) })
}

// wantProtected checks that the policy refuses any change of a field that is not free. Every
// field is changed in turn: one that a later version of the API adds must not be forgotten.
func wantProtected(t *testing.T, v validator, free []string, change func(old, n *corev1.Node) request) {
	t.Helper()
	full := node()
	for _, part := range partsOf(full) {
		fill(part)
	}
	full.ManagedFields = nil // must hold JSON
	for path := range leavesOf(full, free) {
		changed, lacking := full.DeepCopy(), full.DeepCopy()
		another(leavesOf(changed, free)[path])
		leavesOf(lacking, free)[path].SetZero()
		for _, r := range []request{change(full.DeepCopy(), changed), change(full.DeepCopy(), lacking), change(lacking, full.DeepCopy())} {
			if got := v.refuses(t, r); len(got) == 0 {
				t.Errorf("%s is not protected", path)
			}
		}
	}
}

// fill gives everything in the value some value.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(dayOne)))
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("1")))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		put(v, fill)
	default:
		another(v)
	}
}

// put sets an entry of a map to what the function makes of it.
func put(m reflect.Value, set func(reflect.Value)) {
	key, value := reflect.ValueOf("k").Convert(m.Type().Key()), reflect.New(m.Type().Elem()).Elem()
	if old := m.MapIndex(key); old.IsValid() {
		value.Set(old)
	}
	set(value)
	m.SetMapIndex(key, value)
}

// another gives a plain value, or a map, another value.
func another(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[metav1.Time]():
		v.Set(reflect.ValueOf(metav1.NewTime(dayOne.Add(time.Hour))))
		return
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("2")))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	case reflect.Map:
		put(v, another)
	default:
		panic(fmt.Sprint("no other value for a ", v.Type()))
	}
}

func partsOf(n *corev1.Node) map[string]reflect.Value {
	return map[string]reflect.Value{
		"ObjectMeta": reflect.ValueOf(&n.ObjectMeta).Elem(), "Spec": reflect.ValueOf(&n.Spec).Elem(), "Status": reflect.ValueOf(&n.Status).Elem(),
	}
}

// leavesOf are the values that a node is made of, by their path, but for those that are free.
func leavesOf(n *corev1.Node, free []string) map[string]reflect.Value {
	leaves := map[string]reflect.Value{}
	for path, part := range partsOf(n) {
		collect(leaves, free, path, part)
	}
	return leaves
}

func collect(leaves map[string]reflect.Value, free []string, path string, v reflect.Value) {
	switch {
	case slices.Contains(free, path):
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Time]():
		for i := range v.NumField() {
			collect(leaves, free, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		collect(leaves, free, path, v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0:
		collect(leaves, free, path, v.Index(0))
	default:
		leaves[path] = v
	}
}
