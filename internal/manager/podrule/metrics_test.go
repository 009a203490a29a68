package podrule

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/nodecache"
)

// seriesOf returns all series, by the name of the metric and the values of its labels.
func seriesOf(t *testing.T, metrics prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				name = append(name, label.GetValue())
			}
			series[strings.Join(name, " ")] = metric.GetGauge().GetValue()
		}
	}
	return series
}

func TestMetricsMatchTheStatus(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	status := func(enforced metav1.ConditionStatus, summary v1alpha1.PodSummary) *v1alpha1.PodReadinessRuleStatus {
		return &v1alpha1.PodReadinessRuleStatus{Summary: &summary, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: enforced}}}
	}
	metrics.reconciled("a", status(metav1.ConditionFalse, v1alpha1.PodSummary{Waiting: 9, Late: 9, Ungated: 9}))
	metrics.reconciled("a", status(metav1.ConditionTrue, v1alpha1.PodSummary{Gated: 7, Open: 5, Waiting: 2, Late: 1, Foreign: 1, LatchClosed: 1, Ungated: 3}))
	metrics.reconciled("b", status(metav1.ConditionFalse, v1alpha1.PodSummary{Gated: 4, Waiting: 4, WithoutAgent: 4}))
	b := map[string]float64{
		"pod_readiness_rule_enforced b": 0, "pod_readiness_rule_pods b open": 0, "pod_readiness_rule_pods b waiting": 4, "pod_readiness_rule_pods b late": 0,
		"pod_readiness_rule_pods b ungated": 0, "pod_readiness_rule_pods b withoutAgent": 4, "pod_readiness_rule_pods b foreign": 0, "pod_readiness_rule_pods b latchClosed": 0,
	}
	both := map[string]float64{
		"pod_readiness_rule_enforced a": 1, "pod_readiness_rule_pods a open": 5, "pod_readiness_rule_pods a waiting": 2, "pod_readiness_rule_pods a late": 1,
		"pod_readiness_rule_pods a ungated": 3, "pod_readiness_rule_pods a withoutAgent": 0, "pod_readiness_rule_pods a foreign": 1, "pod_readiness_rule_pods a latchClosed": 1,
	}
	maps.Copy(both, b)
	if got := seriesOf(t, registry); !maps.Equal(got, both) {
		t.Errorf("series are %v, want %v", got, both)
	}
	metrics.forget("a")
	if got := seriesOf(t, registry); !maps.Equal(got, b) {
		t.Errorf("without the rule a, series are %v, want %v", got, b)
	}
}

// A rule has series from its first reconcile until it is deleted.
func TestMetricsOfARuleExistWhileTheRuleExists(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	rule := &v1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "network", UID: "u", Generation: 1},
		Spec:       v1alpha1.PodReadinessRuleSpec{Components: []v1alpha1.Component{{Name: "path", Reach: &v1alpha1.ReachComponent{}}}},
	}
	clock, registry := testclock.NewFakePassiveClock(time.Unix(1e9, 0)), prometheus.NewRegistry()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: agents.Namespace, Name: agents.Name("n1"), Labels: agents.Labels(),
			Annotations: map[string]string{agents.ReportAnnotation: `{"rules":{"u":{"generation":1,"gated":3,"open":1,"waiting":2,"late":1,"foreign":1}}}`},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: clock.Now()}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(rule, lease).WithStatusSubresource(rule).Build()
	r := &Reconciler{
		Client: c, Nodes: nodecache.New(cache.NewStore(cache.MetaNamespaceKeyFunc)), Coverage: admission.New(clock, time.Second, "policy", ""), Others: leadership.NewOthers(clock, ""),
		Metrics: NewMetrics(registry), Clock: clock,
	}
	look := func() map[string]float64 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rule)}); err != nil {
			t.Fatal(err)
		}
		return seriesOf(t, registry)
	}
	if got := look(); len(got) != 8 || got["pod_readiness_rule_pods network foreign"] != 1 || got["pod_readiness_rule_pods network waiting"] != 2 || got["pod_readiness_rule_pods network late"] != 1 {
		t.Errorf("series are %v", got)
	}
	r.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
	if got := look(); len(got) > 0 {
		t.Errorf("the rule is gone, and series are %v", got)
	}
}
