package podrule

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Metrics of rules for pods are what their statuses say. Only the elected leader looks at rules, so that
// sums over replicas count a pod once.
type Metrics struct {
	enforced *prometheus.GaugeVec
	pods     *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		enforced: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pod_readiness_rule_enforced",
			Help: "Whether the condition Enforced of a rule for pods is True (1) or not (0).",
		}, []string{"rule"}),
		pods: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pod_readiness_rule_pods",
			Help: "Pods that a rule selects, by state: open, waiting or ungated; of those that wait, late, latchClosed (gate open, latch still closed) and foreign (another account set the gate to True); withoutAgent of those with the gate.",
		}, []string{"rule", "state"}),
	}
}

// reconciled says what the status of a rule is, whether it could be written or not.
func (m *Metrics) reconciled(rule string, status *v1alpha1.PodReadinessRuleStatus) {
	enforced := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionEnforced) {
		enforced = 1
	}
	m.enforced.WithLabelValues(rule).Set(enforced)
	for state, pods := range map[string]int32{
		"open": status.Summary.Open, "waiting": status.Summary.Waiting, "late": status.Summary.Late,
		"ungated": status.Summary.Ungated, "withoutAgent": status.Summary.WithoutAgent, "foreign": status.Summary.Foreign, "latchClosed": status.Summary.LatchClosed,
	} {
		m.pods.WithLabelValues(rule, state).Set(float64(pods))
	}
}

func (m *Metrics) forget(rule string) {
	m.enforced.DeleteLabelValues(rule)
	m.pods.DeletePartialMatch(prometheus.Labels{"rule": rule})
}
