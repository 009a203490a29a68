package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// metricsOf returns the series of a rule by name and other labels, with their value, or the count of a histogram.
func metricsOf(t *testing.T, rule string) map[string]float64 {
	t.Helper()
	families, err := shared.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if of, ok := labels["rule"]; ok && of != rule {
				continue
			}
			delete(labels, "rule")
			series[family.GetName()+format(labels)] = valueOf(metric)
		}
	}
	return series
}

func format(labels map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.Counter != nil:
		return metric.Counter.GetValue()
	case metric.Gauge != nil:
		return metric.Gauge.GetValue()
	default:
		return float64(metric.Histogram.GetSampleCount())
	}
}

func TestMetricsHaveTheNamesOfTheSharedAPI(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	c.Create(t, rule)
	for _, name := range []string{id + "-1", id + "-2"} {
		c.CreateNode(t, testenv.Node(name, testenv.Pool(id)), corev1.ConditionFalse)
		c.EventuallyNode(t, name, "held", held(rule))
	}
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, rule) })
	c.SetCondition(t, id+"-1", testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id+"-1", "released", free(rule))
	c.EventuallyRule(t, id, "enforced", testenv.Enforced)

	want := map[string]float64{
		"node_readiness_taint_operations_total{operation=add}":                  2,
		"node_readiness_taint_operations_total{operation=remove}":               1,
		"node_readiness_bootstrap_completed_total{}":                            1,
		"node_readiness_bootstrap_duration_seconds{}":                           1,
		"node_readiness_reconciliation_latency_seconds{operation=remove_taint}": 1,
		"node_readiness_rule_nodes{state=held}":                                 1,
		"node_readiness_rule_nodes{state=released}":                             1,
		"node_readiness_blocked_nodes{condition=" + testenv.Condition + "}":     1,
		"node_readiness_build_info{version=dev}":                                1,
	}
	testenv.Eventually(t, "the metrics", func(context.Context) error {
		got := metricsOf(t, id)
		for name, value := range want {
			if got[name] != value {
				return fmt.Errorf("%s is %v, want %v", name, got[name], value)
			}
		}
		return nil
	})
	for _, name := range []string{
		"node_readiness_rules_total{}", "node_readiness_evaluation_duration_seconds{}", "node_readiness_rule_last_reconciliation_timestamp_seconds{}",
		"node_readiness_condition_failures_total{condition=" + testenv.Condition + "}",
	} {
		if metricsOf(t, id)[name] == 0 {
			t.Errorf("%s is missing", name)
		}
	}

	// The series are removed with the rule.
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	testenv.Eventually(t, "removal of the series", func(context.Context) error {
		for name := range metricsOf(t, id) {
			if !strings.HasPrefix(name, "node_readiness_rules_total") && !strings.HasPrefix(name, "node_readiness_build_info") &&
				!strings.HasPrefix(name, "node_readiness_write_conflicts_total") &&
				!strings.HasPrefix(name, "node_readiness_events_dropped_total") && !strings.HasPrefix(name, "node_readiness_nodes_with_unlisted_records") &&
				!strings.HasPrefix(name, "node_readiness_other_leases") && !strings.HasPrefix(name, "node_readiness_waiting_for_lease") &&
				!strings.HasPrefix(name, "readygate_policy_outdated") {
				return errors.New(name)
			}
		}
		return nil
	})
}

// Rejected writes are counted by rule and reason.
func TestRefusedWritesAreCounted(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	refuseWrites(t, c, id)
	c.Create(t, testenv.Rule(id))
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	c.EventuallyRule(t, id, "rejected", func(r *v1alpha1.NodeReadinessRule) bool {
		return r.Status.Summary != nil && r.Status.Summary.Failed == 1
	})
	testenv.Eventually(t, "the count", func(context.Context) error {
		if got := metricsOf(t, id)["node_readiness_failures_total{reason=Invalid}"]; got < 1 {
			return fmt.Errorf("the count is %v", got)
		}
		return nil
	})
}

func TestMetricsCountStuckAndLimitedNodes(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	cases := map[string]struct {
		change func(*v1alpha1.NodeReadinessRule)
		series string
	}{
		"stuck":   {func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To[int32](1) }, "node_readiness_stuck_nodes{}"},
		"limited": {func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(0)) }, "node_readiness_limited_nodes{}"},
		"settles": {func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = 3600 }, "node_readiness_waiting_nodes{cause=MinReady}"},
		"second": {func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.DependsOn, r.Spec.NodeSelector.MatchLabels["pool"] = []string{id + "-stuck"}, v1alpha1.LabelValue(id+"-stuck")
		}, "node_readiness_waiting_nodes{cause=Dependency}"},
	}
	for name := range cases {
		c.CreateNode(t, testenv.Node(id+"-"+name, testenv.Pool(id+"-"+name)), corev1.ConditionFalse)
	}
	time.Sleep(1100 * time.Millisecond) // creation times have whole seconds, and the nodes must be older
	for name, test := range cases {
		c.Create(t, testenv.Rule(id+"-"+name, test.change))
	}
	c.EventuallyNode(t, id+"-settles", "held", func(n *corev1.Node) bool { return testenv.HasTaint(n, testenv.TaintKey(id+"-settles")) })
	c.SetCondition(t, id+"-settles", testenv.Condition, corev1.ConditionTrue)
	for name, test := range cases {
		testenv.Eventually(t, test.series, func(context.Context) error {
			if got := metricsOf(t, id+"-"+name)[test.series]; got != 1 {
				return fmt.Errorf("got %v, want 1", got)
			}
			return nil
		})
	}
	if got := metricsOf(t, id+"-second")["node_readiness_blocked_nodes{condition="+testenv.Condition+"}"]; got != 0 {
		t.Errorf("a rule that waits for its dependency counts %v nodes as held because of its condition", got)
	}
}
