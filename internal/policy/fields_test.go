package policy_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/policy"
)

// free are the fields that the manager may change in part, or that the API server keeps.
var free = []string{
	"Spec.Taints", "ObjectMeta.Annotations", "ObjectMeta.ManagedFields", "ObjectMeta.ResourceVersion", "ObjectMeta.Generation",
}

func TestWhatTheAPIServerKeepsIsNotHeldAgainstTheManager(t *testing.T) {
	v := newValidator(t, policy.Manager().Spec)
	written := managed(func(n *corev1.Node) {
		n.ResourceVersion, n.Generation, n.ManagedFields = "2", 2, []metav1.ManagedFieldsEntry{{Manager: "manager"}}
	})
	wantEqual(t, "refused", v.refuses(t, updated(managed(), written).by(policy.ManagerUser)), nil)
}

// Every field is changed in turn: one that a later version of the API adds must not be
// forgotten.
func TestEveryFieldOfANodeIsProtected(t *testing.T) {
	v := newValidator(t, policy.Manager().Spec)
	full := node()
	fill(reflect.ValueOf(&full.ObjectMeta).Elem())
	fill(reflect.ValueOf(&full.Spec).Elem())
	full.Spec.Taints, full.Annotations, full.ManagedFields = nil, nil, nil
	for path := range leavesOf(full) {
		changed, lacking := full.DeepCopy(), full.DeepCopy()
		change(leavesOf(changed)[path])
		leavesOf(lacking)[path].SetZero()
		for _, r := range []request{updated(full.DeepCopy(), changed), updated(full.DeepCopy(), lacking), updated(lacking, full.DeepCopy())} {
			if got := v.refuses(t, r.by(policy.ManagerUser)); len(got) == 0 {
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
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), reflect.ValueOf("v").Convert(v.Type().Elem()))
	default:
		change(v)
	}
}

// change gives a plain value, or a map, another value.
func change(v reflect.Value) {
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
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), reflect.ValueOf("w").Convert(v.Type().Elem()))
	case reflect.Struct: // a time
		v.Set(reflect.ValueOf(metav1.NewTime(dayOne.Add(time.Hour))))
	default:
		panic(fmt.Sprint("no other value for a ", v.Type()))
	}
}

// leavesOf are the values that a node's metadata and spec are made of, by their path, but for
// those that are free.
func leavesOf(n *corev1.Node) map[string]reflect.Value {
	leaves := map[string]reflect.Value{}
	collect(leaves, "ObjectMeta", reflect.ValueOf(&n.ObjectMeta).Elem())
	collect(leaves, "Spec", reflect.ValueOf(&n.Spec).Elem())
	return leaves
}

func collect(leaves map[string]reflect.Value, path string, v reflect.Value) {
	switch {
	case slices.Contains(free, path):
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Time]():
		for i := range v.NumField() {
			collect(leaves, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		collect(leaves, path, v.Elem())
	case v.Kind() == reflect.Slice && v.Len() > 0:
		collect(leaves, path, v.Index(0))
	default:
		leaves[path] = v
	}
}
