package admission

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics of the policies. Only the leader compares them.
type Metrics struct {
	outdated *prometheus.GaugeVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		outdated: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "readygate_policy_outdated",
			Help: "1 if the stored admission policy differs from the one that the rules require, else 0. Absent if the policy is not installed.",
		}, []string{"policy"}),
	}
}

func (m *Metrics) compared(policy string, same bool) {
	value := 1.0
	if same {
		value = 0
	}
	m.outdated.WithLabelValues(policy).Set(value)
}

func (m *Metrics) forget(policy string) { m.outdated.DeleteLabelValues(policy) }
