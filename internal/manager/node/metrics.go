package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Metrics of the node controller. Node names are never labels.
type Metrics struct {
	operations         *prometheus.CounterVec
	evaluationSeconds  *prometheus.HistogramVec
	failures           *prometheus.CounterVec
	bootstrapCompleted *prometheus.CounterVec
	bootstrapSeconds   *prometheus.HistogramVec
	latencySeconds     *prometheus.HistogramVec
	conditionFailures  *prometheus.CounterVec
	conflicts          prometheus.Counter
	unlistedNodes      prometheus.Gauge
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		operations: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_taint_operations_total",
			Help: "Taints added to and removed from nodes, by rule and operation (add, remove).",
		}, []string{"rule", "operation"}),
		evaluationSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_evaluation_duration_seconds",
			Help:    "Time to evaluate all rules for one node, divided by the number of rules that select the node. Observed once per selecting rule.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"rule"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_failures_total",
			Help: "Node writes that the API server rejected, by rule and reason.",
		}, []string{"rule", "reason"}),
		bootstrapCompleted: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_bootstrap_completed_total",
			Help: "Nodes for which a bootstrap-only rule has completed: once per node, or once per boot with bootstrapScope Boot.",
		}, []string{"rule"}),
		bootstrapSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_bootstrap_duration_seconds",
			Help:    "Time from the creation of a node until a bootstrap-only rule completed.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1200},
		}, []string{"rule"}),
		latencySeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_reconciliation_latency_seconds",
			Help:    "Time from the last transition of a condition that the rule names until the taint was changed (add_taint, remove_taint). Transition times have a resolution of one second.",
			Buckets: []float64{.01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 120, 300},
		}, []string{"rule", "operation"}),
		conditionFailures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_condition_failures_total",
			Help: "Evaluations with result Held, by rule and type of the unmet condition.",
		}, []string{"rule", "condition"}),
		conflicts: factory.NewCounter(prometheus.CounterOpts{
			Name: "node_readiness_write_conflicts_total",
			Help: "Node writes that failed with a conflict and were decided again from fresh state.",
		}),
		unlistedNodes: factory.NewGauge(prometheus.GaugeOpts{
			Name: "node_readiness_nodes_with_unlisted_records",
			Help: "Nodes with ownership records that no rule wrote. The manager does not change these records and their taints.",
		}),
	}
}

// Forget deletes all series of a deleted rule.
func (m *Metrics) Forget(rule string) {
	labels := prometheus.Labels{"rule": rule}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.operations, m.evaluationSeconds, m.failures, m.bootstrapCompleted, m.bootstrapSeconds, m.latencySeconds, m.conditionFailures} {
		vec.DeletePartialMatch(labels)
	}
}

// evaluated observes one evaluation of all rules. Rules that select the node share its time evenly.
func (m *Metrics) evaluated(verdicts []noderule.Verdict, took time.Duration) {
	selecting := 0
	for i := range verdicts {
		if verdicts[i].State != noderule.NotSelected {
			selecting++
		}
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.State == noderule.NotSelected {
			continue
		}
		m.evaluationSeconds.WithLabelValues(v.Rule.Name).Observe(took.Seconds() / float64(selecting))
		if v.State != noderule.Held {
			continue
		}
		for _, unmet := range v.Unmet {
			m.conditionFailures.WithLabelValues(v.Rule.Name, unmet.Requirement.Type).Inc()
		}
	}
}

func (m *Metrics) changed(d decision, change noderule.Change, now time.Time) {
	switch change.Kind {
	case noderule.Added:
		m.operations.WithLabelValues(change.Rule, "add").Inc()
		m.latency(d, change, now, "add_taint")
	case noderule.Removed:
		m.operations.WithLabelValues(change.Rule, "remove").Inc()
		m.latency(d, change, now, "remove_taint")
	case noderule.Completed:
		m.bootstrapCompleted.WithLabelValues(change.Rule).Inc()
		m.bootstrapped(d, change, now)
	}
}

// bootstrapped observes nodes that are younger than the rule, at their first boot: the rule did not exist for the whole
// bootstrap of other nodes.
func (m *Metrics) bootstrapped(d decision, change noderule.Change, now time.Time) {
	for _, verdict := range d.Verdicts {
		if verdict.Rule.UID == change.UID && !d.Node.Created.Before(verdict.Rule.Created) && !noderule.HasCompletion(verdict.Rule, d.Node) {
			m.bootstrapSeconds.WithLabelValues(change.Rule).Observe(now.Sub(d.Node.Created).Seconds())
		}
	}
}

// latency is observed only if a condition caused the change, not if a rule, a label, a boot or time alone did.
func (m *Metrics) latency(d decision, change noderule.Change, now time.Time, operation string) {
	for _, verdict := range d.Verdicts {
		if verdict.Rule.UID != change.UID || verdict.State == noderule.NotSelected {
			continue
		}
		if last := d.Node.LastTransition(verdict.Rule); last.After(verdict.Rule.Created) && noderule.CausedBy(last, &verdict, d.Node) {
			m.latencySeconds.WithLabelValues(change.Rule, operation).Observe(max(0, now.Sub(last).Seconds()))
		}
	}
}
