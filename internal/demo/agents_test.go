package demo_test

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/readygate/readygate/internal/demo"
)

func TestLastComponentsFromTheMetricsOfAnAgent(t *testing.T) {
	registry := prometheus.NewRegistry()
	last := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "readygate_podgate_last_component_total"}, []string{"rule", "component"})
	other := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "readygate_podgate_component_total"}, []string{"rule", "component"})
	registry.MustRegister(last, other)
	other.WithLabelValues("network", "flannel").Inc()
	last.WithLabelValues("network", "never").Add(0)
	for range 3 {
		last.WithLabelValues("network", "policy").Inc()
	}
	expect := func(want ...string) {
		t.Helper()
		if got, err := demo.LastOf(registry); err != nil || !slices.Equal(got, want) {
			t.Errorf("the last ones were %q (%v), want %q", got, err, want)
		}
	}
	expect("policy")
	last.WithLabelValues("network", "calico").Inc()
	last.WithLabelValues("storage", "calico").Inc()
	expect("calico", "policy")
}
