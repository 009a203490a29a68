package rule

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of rules. How many nodes a rule holds is counted when somebody asks, from the
// same cache and by the same core that decides.
type Metrics struct {
	lastReconciliation *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		lastReconciliation: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "node_readiness_rule_last_reconciliation_timestamp_seconds",
			Help: "When the rule was last looked at, in seconds since 1970.",
		}, []string{"rule"}),
	}
	registerer.MustRegister(m.lastReconciliation)
	return m
}

func (m *Metrics) reconciled(rule string, now time.Time) {
	m.lastReconciliation.WithLabelValues(rule).Set(float64(now.Unix()))
}

func (m *Metrics) forget(rule string) { m.lastReconciliation.DeleteLabelValues(rule) }

// Collector counts rules and their nodes at every scrape. Only the elected leader counts:
// sums over replicas must not count a node twice.
type Collector struct {
	reconciler *Reconciler
	elected    <-chan struct{}
}

// NewCollector makes a collector that is silent until elected is closed.
func NewCollector(reconciler *Reconciler, elected <-chan struct{}) *Collector {
	return &Collector{reconciler: reconciler, elected: elected}
}

var (
	rulesDesc   = prometheus.NewDesc("node_readiness_rules_total", "Number of rules.", nil, nil)
	nodesDesc   = prometheus.NewDesc("node_readiness_rule_nodes", "Nodes that a rule selects, by state (held, released).", []string{"rule", "state"}, nil)
	blockedDesc = prometheus.NewDesc("node_readiness_blocked_nodes", "Nodes that a rule holds because of a condition.", []string{"rule", "condition"}, nil)
)

// Describe sends the descriptions of what Collect sends.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- rulesDesc
	descs <- nodesDesc
	descs <- blockedDesc
}

// Collect counts from the caches.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	book, err := c.reconciler.Rules.Current(ctx)
	if err != nil {
		return // no answer is better than a wrong one: the scrape shows the gap
	}
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(rulesDesc, len(book.Rules()))
	summaries := book.Summaries(c.reconciler.knownNodes(), 0)
	for i, rule := range book.Rules() {
		if rule.Deleting || rule.Problem != nil {
			continue
		}
		summary := summaries[i]
		gauge(nodesDesc, summary.Holding, rule.Name, "held")
		gauge(nodesDesc, summary.Selected-summary.Holding, rule.Name, "released")
		for _, requirement := range rule.Requirements {
			gauge(blockedDesc, summary.Blocked[requirement.Type], rule.Name, requirement.Type)
		}
	}
}
