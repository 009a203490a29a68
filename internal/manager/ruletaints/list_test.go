package ruletaints_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/ruletaints"
)

// api is an API server that counts writes and can fail.
type api struct {
	client.WithWatch
	writes int
	err    error
	getErr error
	hangs  bool // a write gets no response
}

func newAPI(data map[string]string) *api {
	a := &api{}
	builder := fake.NewClientBuilder()
	if data != nil {
		builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ruletaints.ConfigMapName}, Data: data})
	}
	a.WithWatch = builder.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			a.writes++
			if a.hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			if a.err != nil {
				return a.err
			}
			return c.Patch(ctx, obj, patch)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			if a.getErr != nil {
				return a.getErr
			}
			return c.Get(ctx, key, obj)
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
	if err := a.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: ruletaints.ConfigMapName}, &obj); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(obj.Data))
}

func book(uids ...string) *noderule.Rulebook {
	var rules []*v1alpha1.NodeReadinessRule
	for _, uid := range uids {
		rules = append(rules, &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}, Spec: v1alpha1.NodeReadinessRuleSpec{
			Taint: v1alpha1.Taint{Key: "readiness.k8s.io/" + uid, Effect: corev1.TaintEffectNoSchedule},
		}})
	}
	return noderule.NewRulebook(rules)
}

func newList(a *api) (*ruletaints.List, *testclock.FakeClock) {
	clock := testclock.NewFakeClock(time.Unix(1e9, 0))
	return ruletaints.New(a, a, "ns", clock), clock
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, ruletaints.ConfigMapName, errors.New("no"))

func TestEntriesAreAddedAndRemovedOneByOne(t *testing.T) {
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
		t.Errorf("a removed entry of a rule that exists is not entered again: %v, %v", a.keys(t), err)
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
	if deleted, err := ruletaints.Delete(t.Context(), a, "ns"); err != nil || !deleted {
		t.Fatal(deleted, err)
	}
	if deleted, err := ruletaints.Delete(t.Context(), a, "ns"); err != nil || deleted {
		t.Error(deleted, err)
	}
	if err := list.Enter(t.Context(), book("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("created again with %v", got)
	}
}

// A rejection is a problem at once, and nodes are still held. A failure that may be transient is returned a few times
// first.
func TestAListThatCannotBeWrittenIsAProblem(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		returns int
	}{"a rejection": {forbidden, 0}, "a failure": {errors.New("timeout"), 4}} {
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

// Nodes were decided without the list: each listener must be called when the list was read, also while it cannot be
// written.
func TestAListThatIsReadLateIsAChange(t *testing.T) {
	a := newAPI(map[string]string{"gone": "readiness.k8s.io/gone:NoSchedule"})
	list, clock := newList(a)
	var first, second int
	list.OnChange(func() { first++ })
	list.OnChange(func() { second++ })
	a.getErr, a.err = forbidden, forbidden
	if err := list.Enter(t.Context(), book("a")); err != nil || list.Taints() != nil || first != 1 || second != 1 {
		t.Fatalf("error %v, entries %v, %d and %d changes", err, list.Taints(), first, second)
	}
	a.getErr = nil
	retry, _ := list.Problem()
	clock.Step(retry)
	if err := list.Enter(t.Context(), book("a")); err != nil || len(list.Taints()) != 1 || first != 2 || second != 2 {
		t.Errorf("after the read: error %v, entries %v, %d and %d changes", err, list.Taints(), first, second)
	}
}

// While a write gets no response, callers wait for its timeout once. After that only the caller that repeats the write
// waits. A removal does not delay callers whose rules are in the list.
func TestAWriteWithoutAnAnswerDelaysCallersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(map[string]string{"gone": "readiness.k8s.io/gone:NoSchedule"})
		list := ruletaints.New(a, a, "ns", clock.RealClock{})
		if err := list.Enter(t.Context(), book("a")); err != nil {
			t.Fatal(err)
		}
		a.hangs = true
		removed := make(chan error)
		go func() { removed <- list.Remove(t.Context(), []types.UID{"gone"}) }()
		synctest.Wait()
		start := time.Now()
		if err := list.Enter(t.Context(), book("a")); err != nil || time.Since(start) > 0 {
			t.Errorf("a removal delays others by %v: %v", time.Since(start), err)
		}
		if err := <-removed; err == nil {
			t.Error("a removal without a response succeeds")
		}

		start = time.Now()
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if err := list.Enter(t.Context(), book("a", "b")); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("callers wait for %v", waited)
		}
		retry, problem := list.Problem()
		if !errors.Is(problem, context.DeadlineExceeded) {
			t.Fatalf("problem: %v", problem)
		}
		time.Sleep(retry) // virtual time
		go func() { _ = list.Enter(t.Context(), book("a", "b")) }()
		synctest.Wait()
		start = time.Now()
		if err := list.Enter(t.Context(), book("a", "b")); err != nil || time.Since(start) > 0 {
			t.Errorf("a retry delays others by %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Minute)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := list.Remove(ctx, []types.UID{"gone"}); err == nil {
			t.Error("a removal succeeds after its context ended")
		}
	})
}

// Another client may replace the ConfigMap.
func TestEntriesThatAnotherClientRemovedAreEnteredAgain(t *testing.T) {
	a := newAPI(map[string]string{})
	list, clock := newList(a)
	enter := func(rules *noderule.Rulebook) {
		t.Helper()
		if err := errors.Join(list.Refresh(t.Context()), list.Enter(t.Context(), rules)); err != nil {
			t.Fatal(err)
		}
	}
	empty := func() {
		t.Helper()
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ruletaints.ConfigMapName}}
		if err := a.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	enter(book("a"))
	empty()
	both := book("a", "b")
	enter(both)
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after the next write: %v", got)
	}
	empty()
	clock.Step(5 * time.Minute)
	enter(both)
	if got := a.keys(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after some minutes: %v", got)
	}
}

func TestAnEntryThatCouldNotBeRemovedIsReadAgain(t *testing.T) {
	a := newAPI(map[string]string{"gone": "readiness.k8s.io/gone:NoSchedule"})
	list, _ := newList(a)
	if err := list.Enter(t.Context(), book("a")); err != nil {
		t.Fatal(err)
	}
	a.err = errors.New("timeout")
	if err := list.Remove(t.Context(), []types.UID{"gone"}); !errors.Is(err, a.err) {
		t.Fatal(err)
	}
	if err := list.Refresh(t.Context()); err != nil || len(list.Taints()) != 2 {
		t.Errorf("entries %v, %v", list.Taints(), err)
	}
}

// The entry of a rule with an invalid taint would be malformed, so it is not written.
func TestARuleWithAnInvalidTaintIsNotEntered(t *testing.T) {
	a := newAPI(map[string]string{})
	list, _ := newList(a)
	if err := list.Enter(t.Context(), book("a", "in valid")); err != nil {
		t.Fatal(err)
	}
	if got := a.keys(t); !slices.Equal(got, []string{"a"}) {
		t.Errorf("entries: %v", got)
	}
}
