package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Metrics of the writer of nodes. Node names are never labels.
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

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		operations: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_taint_operations_total",
			Help: "Taints put on and taken off nodes, by rule and operation (add, remove).",
		}, []string{"rule", "operation"}),
		evaluationSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_evaluation_duration_seconds",
			Help:    "Time to evaluate all rules for one node, divided by the number of rules that select it, for each of these rules.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}, []string{"rule"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_failures_total",
			Help: "Writes of nodes that the API server refused, by rule and reason.",
		}, []string{"rule", "reason"}),
		bootstrapCompleted: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_bootstrap_completed_total",
			Help: "Nodes that a bootstrap-only rule has released for good, or, with bootstrapScope Boot, for the rest of a boot.",
		}, []string{"rule"}),
		bootstrapSeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_bootstrap_duration_seconds",
			Help:    "Time from the creation of a node until a bootstrap-only rule released it for good.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 300, 600, 1200},
		}, []string{"rule"}),
		latencySeconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "node_readiness_reconciliation_latency_seconds",
			Help:    "Time from the last transition of a condition that the rule names until the taint was changed (add_taint, remove_taint). Transition times have a resolution of one second.",
			Buckets: []float64{.01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 120, 300},
		}, []string{"rule", "operation"}),
		conditionFailures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "node_readiness_condition_failures_total",
			Help: "Evaluations in which a condition held a node back, by rule and condition type.",
		}, []string{"rule", "condition"}),
		conflicts: factory.NewCounter(prometheus.CounterOpts{
			Name: "node_readiness_write_conflicts_total",
			Help: "Writes of nodes that met somebody else's write and were decided again.",
		}),
		unlistedNodes: factory.NewGauge(prometheus.GaugeOpts{
			Name: "node_readiness_nodes_with_unlisted_records",
			Help: "Nodes with hold records that no rule wrote. The manager leaves them and their taints as they are.",
		}),
	}
}

// Forget drops every series of a rule that is gone.
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

// bootstrapped measures nodes that are younger than the rule, at their first boot: others did not
// wait for it all the time.
func (m *Metrics) bootstrapped(d decision, change noderule.Change, now time.Time) {
	for _, verdict := range d.Verdicts {
		if verdict.Rule.UID == change.UID && !d.Node.Created.Before(verdict.Rule.Created) && !noderule.HasCompletion(verdict.Rule, d.Node) {
			m.bootstrapSeconds.WithLabelValues(change.Rule).Observe(now.Sub(d.Node.Created).Seconds())
		}
	}
}

// latency is measured only where a condition made the change: not where a rule, a label, a boot or
// time alone did.
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
