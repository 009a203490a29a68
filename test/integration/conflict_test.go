package integration_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/internal/manager/leadership"
	nodecontroller "github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/quota"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
	"github.com/readygate/readygate/internal/testenv"
)

// These tests call a reconciler directly, with a real API server and without a manager. Another client writes exactly
// between the decision and the PATCH.

// raced reconciles the node once, and calls the writer before the first PATCH. It returns the number of PATCHes and the
// resulting node.
func raced(t *testing.T, c *testenv.Cluster, name string, writer func()) (int, *corev1.Node) {
	t.Helper()
	patches := 0
	racing := interceptor.NewClient(c.Client, interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patches++; patches == 1 {
				writer()
			}
			return next.Patch(ctx, obj, patch, opts...)
		},
	})
	if _, err := reconcilerWith(c, racing, c.Client).Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	var node corev1.Node
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: name}, &node); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return patches, &node
}

// reconcilerWith returns a reconciler that writes with one client and reads rules with another.
func reconcilerWith(c *testenv.Cluster, writer client.Client, rules client.Reader) *nodecontroller.Reconciler {
	return &nodecontroller.Reconciler{
		Client: writer, Live: c.Client, Rules: rulecache.New(rules), Failures: &nodecontroller.Failures{},
		Owners: ruletaints.New(c.Client, c.Client, metav1.NamespaceDefault, clock.RealClock{}),
		Quota: quota.New(&nodecontroller.Reader{
			Client: writer, API: c.Client, Nodes: nodecache.New(cache.NewStore(cache.MetaNamespaceKeyFunc)), Strip: (&nodecache.Stripper{}).Strip,
		}, leadership.NewFence(clock.RealClock{}, time.Minute, time.Minute), clock.RealClock{}),
		Events: events.NewFakeRecorder(10), Metrics: nodecontroller.NewMetrics(prometheus.NewRegistry()), Clock: clock.RealClock{},
	}
}

func TestConflicts(t *testing.T) {
	c := testenv.StartCluster(t)
	rule := testenv.Rule("rule")
	c.Create(t, rule)
	foreign := corev1.Taint{Key: "example.com/foreign", Effect: corev1.TaintEffectNoExecute}

	t.Run("the reconciler decides again after a conflict", func(t *testing.T) {
		node := testenv.Node("again", testenv.Pool(rule.Name))
		c.Create(t, node)
		patches, got := raced(t, c, node.Name, func() {
			c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
			c.Patch(t, node, func() { node.Spec.Taints = append(node.Spec.Taints, foreign) })
		})
		if patches != 1 || testenv.HasTaint(got, rule.Spec.Taint.Key) {
			t.Errorf("%d patches, taints %v: the condition was True when the taints had changed", patches, got.Spec.Taints)
		}
	})
	t.Run("a foreign taint that is added in between stays", func(t *testing.T) {
		node := testenv.Node("taint", testenv.Pool(rule.Name))
		c.Create(t, node)
		patches, got := raced(t, c, node.Name, func() {
			c.Patch(t, node, func() { node.Spec.Taints = append(node.Spec.Taints, foreign) })
		})
		if patches != 2 || !held(rule)(got) || len(got.Spec.Taints) != 3 {
			t.Errorf("%d patches, taints %v", patches, got.Spec.Taints)
		}
	})
	t.Run("an annotations map that is created in between stays", func(t *testing.T) {
		node := testenv.Node("annotations", testenv.Pool(rule.Name))
		c.Create(t, node)
		patches, got := raced(t, c, node.Name, func() {
			c.Patch(t, node, func() { node.Annotations = map[string]string{"example.com/a": "1"} })
		})
		if patches != 2 || !held(rule)(got) || got.Annotations["example.com/a"] != "1" {
			t.Errorf("%d patches, annotations %v", patches, got.Annotations)
		}
	})
	t.Run("an annotations map that is removed in between is no obstacle", func(t *testing.T) {
		node := testenv.Node("unannotated", testenv.Pool(rule.Name))
		node.Annotations = map[string]string{"example.com/a": "1"}
		c.Create(t, node)
		patches, got := raced(t, c, node.Name, func() {
			c.Patch(t, node, func() { node.Annotations = nil })
		})
		if patches != 2 || !held(rule)(got) {
			t.Errorf("%d patches, taints %v", patches, got.Spec.Taints)
		}
	})
	t.Run("a heartbeat or a label in between is no conflict", func(t *testing.T) {
		node := testenv.Node("heartbeat", testenv.Pool(rule.Name))
		c.Create(t, node)
		patches, got := raced(t, c, node.Name, func() {
			c.SetCondition(t, node.Name, "Ready", corev1.ConditionTrue)
			c.Patch(t, node, func() { node.Labels["example.com/a"] = "1" })
		})
		if patches != 1 || !held(rule)(got) || got.Labels["example.com/a"] != "1" {
			t.Errorf("%d patches, taints %v", patches, got.Spec.Taints)
		}
	})
	t.Run("the old decision does not change a node that is recreated in between", func(t *testing.T) {
		node := testenv.Node("recreated", testenv.Pool(rule.Name))
		c.Create(t, node)
		_, got := raced(t, c, node.Name, func() {
			if err := c.Client.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			c.Create(t, testenv.Node("recreated", nil))
		})
		if testenv.HasTaint(got, rule.Spec.Taint.Key) || len(got.Annotations) > 0 {
			t.Errorf("taints %v, annotations %v", got.Spec.Taints, got.Annotations)
		}
	})
	t.Run("a node deleted in between is no error", func(t *testing.T) {
		node := testenv.Node("deleted", testenv.Pool(rule.Name))
		c.Create(t, node)
		_, got := raced(t, c, node.Name, func() {
			if err := c.Client.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		})
		if got.UID != "" {
			t.Errorf("the node exists: %v", got)
		}
	})
	t.Run("a second conflict of the same patch is a rejection", func(t *testing.T) {
		node := testenv.Node("refused", testenv.Pool(rule.Name))
		c.Create(t, node)
		patches := 0
		refusing := interceptor.NewClient(c.Client, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				patches++
				return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Message: "a webhook says no"}}
			},
		})
		reconciler := reconcilerWith(c, refusing, c.Client)
		result, err := reconciler.Reconcile(t.Context(), requestFor(node))
		if err != nil || result.RequeueAfter == 0 || patches != 2 {
			t.Errorf("%v, %v after %d patches: want a backoff after 2", result, err, patches)
		}
		if failure, ok := reconciler.Failures.Of(rule.Name)[node.Name]; !ok || !strings.Contains(failure.Message, "a webhook says no") {
			t.Errorf("the failure is not recorded: %v", failure)
		}
	})
	t.Run("repeated server errors are recorded", func(t *testing.T) {
		node := testenv.Node("failing", testenv.Pool(rule.Name))
		c.Create(t, node)
		failing := interceptor.NewClient(c.Client, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return apierrors.NewInternalError(errors.New("the webhook is down"))
			},
		})
		reconciler := reconcilerWith(c, failing, c.Client)
		for try := 1; try <= 5; try++ {
			_, err := reconciler.Reconcile(t.Context(), requestFor(node))
			if shown := len(reconciler.Failures.Of(rule.Name)) > 0; shown != (try == 5) || (err == nil) != shown {
				t.Errorf("attempt %d: %v, recorded: %v", try, err, shown)
			}
		}
	})
	t.Run("a stale cache does not cause a sweep", func(t *testing.T) {
		node := testenv.Node("behind", testenv.Pool(rule.Name))
		c.Create(t, node)
		if _, err := reconcilerWith(c, c.Client, c.Client).Reconcile(t.Context(), requestFor(node)); err != nil {
			t.Fatal(err)
		}
		forgetful := interceptor.NewClient(c.Client, interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		})
		if _, err := reconcilerWith(c, c.Client, forgetful).Reconcile(t.Context(), requestFor(node)); err == nil {
			t.Error("no error")
		}
		c.EventuallyNode(t, node.Name, "still held", held(rule))
	})
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}
