package rulecache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	sources "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// rule is a rule for the nodes of a separate pool.
func rule(name string) *v1alpha1.NodeReadinessRule {
	return &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: "NetworkReady", RequiredStatus: corev1.ConditionTrue}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/NetworkReady", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(name)}},
		},
	}
}

func rules(count int) []*v1alpha1.NodeReadinessRule {
	var all []*v1alpha1.NodeReadinessRule
	for i := range count {
		all = append(all, rule(fmt.Sprintf("rule-%d", i)))
	}
	return all
}

// source is the source of the cache, instead of an API server.
type source struct{ *sources.FakeControllerSource }

// IsWatchListSemanticsUnSupported makes the cache list, then watch.
func (source) IsWatchListSemanticsUnSupported() bool { return true }

// startCache starts a manager's cache of rules that come from the source.
func startCache(t testing.TB, initial ...*v1alpha1.NodeReadinessRule) (cache.Cache, source) {
	t.Helper()
	from := source{sources.NewFakeControllerSource()}
	for _, obj := range initial {
		from.Add(obj)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("NodeReadinessRule"), meta.RESTScopeRoot)
	rulesCache, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: scheme,
		Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(from, obj, resync, indexers)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- rulesCache.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the cache: %v", err)
		}
	})
	informer(t, rulesCache) // which waits until it is synced
	return rulesCache, from
}

func informer(t testing.TB, of cache.Cache) cache.Informer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	i, err := of.GetInformer(ctx, &v1alpha1.NodeReadinessRule{})
	if err != nil || !of.WaitForCacheSync(ctx) {
		t.Fatalf("waiting for the cache: %v", err)
	}
	return i
}

// counted is a cache that counts its lists, and runs a function after the first one.
type counted struct {
	cache.Cache
	lists atomic.Int32
	then  func()
}

func (c *counted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists.Add(1)
	err := c.Cache.List(ctx, list, opts...)
	if c.then != nil {
		c.then()
	}
	return err
}
