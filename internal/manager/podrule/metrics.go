package podrule

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Metrics of PodReadinessRules have the values of their statuses. Only the elected leader reconciles rules, so sums over
// replicas count a pod once.
type Metrics struct {
	enforced *prometheus.GaugeVec
	pods     *prometheus.GaugeVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		enforced: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pod_readiness_rule_enforced",
			Help: "1 if the condition Enforced of a PodReadinessRule is True, else 0.",
		}, []string{"rule"}),
		pods: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pod_readiness_rule_pods",
			Help: "Pods that a PodReadinessRule selects, by state: open, waiting or ungated. Waiting pods are also counted as late, latchClosed (gate open, latch still closed) or foreign (another account set the gate to True). Pods with the gate are also counted as withoutAgent.",
		}, []string{"rule", "state"}),
	}
}

// reconciled sets the metrics of a rule to its computed status, also if the write of the status failed.
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
