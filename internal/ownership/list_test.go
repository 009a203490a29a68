package ownership_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/ownership"
	"github.com/readygate/readygate/internal/readiness"
)

// api is an API server that counts writes and fails while it is told to.
type api struct {
	client.WithWatch
	writes int
	err    error
}

func newAPI(data map[string]string) *api {
	a := &api{}
	builder := fake.NewClientBuilder()
	if data != nil {
		builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ownership.ConfigMapName}, Data: data})
	}
	a.WithWatch = builder.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			a.writes++
			if a.err != nil {
				return a.err
			}
			return c.Patch(ctx, obj, patch)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			a.writes++
			return c.Create(ctx, obj)
		},
	}).Build()
	return a
}

func (a *api) keys(t *testing.T) []string {
	t.Helper()
	var obj corev1.ConfigMap
	if err := a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: ownership.ConfigMapName}, &obj); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(obj.Data))
}

func book(uids ...string) *readiness.Rulebook {
	var rules []*v1alpha1.NodeReadinessRule
	for _, uid := range uids {
		rules = append(rules, &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}, Spec: v1alpha1.NodeReadinessRuleSpec{
			Taint: v1alpha1.Taint{Key: "readiness.k8s.io/" + uid, Effect: corev1.TaintEffectNoSchedule},
		}})
	}
	return readiness.NewRulebook(rules)
}

func newList(a *api) (*ownership.List, *testclock.FakeClock) {
	clock := testclock.NewFakeClock(time.Unix(1e9, 0))
	return &ownership.List{Live: a, Client: a, Namespace: "ns", Clock: clock}, clock
}

func TestEntriesComeAndGoOneByOne(t *testing.T) {
	a := newAPI(map[string]string{"gone": "readiness.k8s.io/gone:NoSchedule", "odd": "not a taint"})
	list, _ := newList(a)
	both := book("a", "b")
	for range 3 {
		if err := list.Enter(t.Context(), both); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b", "gone", "odd"}) || a.writes != 1 {
		t.Errorf("%d writes made %v", a.writes, got)
	}
	if taints := list.Taints(); len(taints) != 3 || taints["gone"].String() != "readiness.k8s.io/gone:NoSchedule" {
		t.Errorf("taints are %v", taints)
	}
	if err := list.Remove(t.Context(), []types.UID{"gone"}); err != nil {
		t.Fatal(err)
	}
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b", "odd"}) {
		t.Errorf("after a removal: %v", got)
	}
	if err := list.Enter(t.Context(), book("a", "b", "gone")); err != nil || !slices.Contains(a.keys(t), "gone") {
		t.Errorf("a rule that exists after all is not entered again: %v, %v", a.keys(t), err)
	}
}

func TestAMissingConfigMapIsCreatedWithAllEntries(t *testing.T) {
	a := newAPI(nil)
	list, _ := newList(a)
	if list.Taints() != nil {
		t.Error("there are entries before the list was read")
	}
	if err := list.Enter(t.Context(), book("a")); err != nil {
		t.Fatal(err)
	}
	if deleted, err := ownership.Delete(t.Context(), a, "ns"); err != nil || !deleted {
		t.Fatal(deleted, err)
	}
	if deleted, err := ownership.Delete(t.Context(), a, "ns"); err != nil || deleted {
		t.Error(deleted, err)
	}
	if err := list.Enter(t.Context(), book("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("created again with %v", got)
	}
}

// A refusal is a problem at once, and does not keep nodes from being held. A failure that may pass is
// returned a few times first.
func TestAListThatCannotBeWrittenIsAProblem(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ownership.ConfigMapName, errors.New("no"))
	for name, c := range map[string]struct {
		err     error
		returns int
	}{"a refusal": {forbidden, 0}, "a failure": {errors.New("timeout"), 4}} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(map[string]string{})
			list, clock := newList(a)
			changes := 0
			list.OnChange(func() { changes++ })
			a.err = c.err
			rules := book("a")
			for i := range c.returns {
				if err := list.Enter(t.Context(), rules); !errors.Is(err, c.err) {
					t.Fatalf("attempt %d: %v", i+1, err)
				}
			}
			for range 3 {
				if err := list.Enter(t.Context(), rules); err != nil {
					t.Fatalf("nodes are not held: %v", err)
				}
			}
			retry, problem := list.Problem()
			if !errors.Is(problem, c.err) || retry <= 0 || changes != 1 || a.writes != c.returns+1 {
				t.Errorf("problem %v, again in %v, %d changes, %d writes", problem, retry, changes, a.writes)
			}
			a.err = nil
			clock.Step(retry)
			if err := list.Enter(t.Context(), rules); err != nil {
				t.Fatal(err)
			}
			if _, problem := list.Problem(); problem != nil || changes != 2 || len(list.Taints()) != 1 {
				t.Errorf("after the retry: problem %v, %d changes, entries %v", problem, changes, list.Taints())
			}
		})
	}
}
