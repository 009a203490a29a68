package noderule

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Metrics of NodeReadinessRules. Collector counts their nodes.
type Metrics struct {
	lastReconciliation *prometheus.GaugeVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	factory := promauto.With(registerer)
	return &Metrics{
		lastReconciliation: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "node_readiness_rule_last_reconciliation_timestamp_seconds",
			Help: "Unix time of the last reconcile of the rule.",
		}, []string{"rule"}),
	}
}

func (m *Metrics) reconciled(rule string, now time.Time) {
	m.lastReconciliation.WithLabelValues(rule).Set(float64(now.Unix()))
}

func (m *Metrics) forget(rule string) { m.lastReconciliation.DeleteLabelValues(rule) }

// Collector counts rules and their nodes at each scrape, from the caches, with the core that decides. Only the elected
// leader counts: sums over replicas must not count a node twice.
type Collector struct {
	reconciler *Reconciler
	elected    <-chan struct{}
}

// NewCollector returns a collector that collects nothing until elected is closed.
func NewCollector(reconciler *Reconciler, elected <-chan struct{}) *Collector {
	return &Collector{reconciler: reconciler, elected: elected}
}

var (
	rulesDesc   = prometheus.NewDesc("node_readiness_rules_total", "Number of rules.", nil, nil)
	nodesDesc   = prometheus.NewDesc("node_readiness_rule_nodes", "Nodes that a rule selects, by state (held, released).", []string{"rule", "state"}, nil)
	stuckDesc   = prometheus.NewDesc("node_readiness_stuck_nodes", "Nodes that a rule has held for longer than its progressDeadlineSeconds.", []string{"rule"}, nil)
	limitedDesc = prometheus.NewDesc("node_readiness_limited_nodes", "Nodes that stay released although their requirements are unmet, because maxUnavailable of the rule is reached.", []string{"rule"}, nil)
	blockedDesc = prometheus.NewDesc("node_readiness_blocked_nodes", "Nodes that a rule holds, by unmet condition.", []string{"rule", "condition"}, nil)
	waitingDesc = prometheus.NewDesc("node_readiness_waiting_nodes", "Nodes whose result does not depend on the conditions of the rule alone, by cause: held (MinReady, NotReady, Dependency) or released by the deadline (Deadline).", []string{"rule", "cause"}, nil)
	keptOffDesc = prometheus.NewDesc("node_readiness_blocked_daemonsets", "DaemonSets that report a condition of a rule and do not tolerate its taint.", []string{"rule"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- rulesDesc
	descs <- nodesDesc
	descs <- blockedDesc
	descs <- stuckDesc
	descs <- limitedDesc
	descs <- waitingDesc
	descs <- keptOffDesc
}

// Collect implements prometheus.Collector.
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
		return // no series is better than a wrong value
	}
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(rulesDesc, len(book.Rules()))
	summaries := book.Summaries(c.reconciler.knownNodes(), c.reconciler.Clock.Now(), 0)
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
		collectSafety(gauge, rule, summary)
		if blocked, reporters := c.reconciler.reportersOf(rule); reporters > 0 {
			gauge(keptOffDesc, len(blocked), rule.Name)
		}
	}
}

// collectSafety collects the gauges of the optional fields that the rule has.
func collectSafety(gauge func(desc *prometheus.Desc, value int, labels ...string), rule *noderule.Rule, summary noderule.Summary) {
	if rule.Deadline > 0 {
		gauge(stuckDesc, summary.Stuck, rule.Name)
	}
	if rule.MaxUnavailable != nil && rule.Active() {
		gauge(limitedDesc, summary.Limited, rule.Name)
	}
	for cause, may := range map[noderule.Cause]bool{
		noderule.CauseMinReady:   rule.MinReady > 0,
		noderule.CauseNotReady:   rule.Boot,
		noderule.CauseDependency: len(rule.DependsOn) > 0,
		noderule.CauseDeadline:   rule.ReleaseStuck,
	} {
		if may {
			gauge(waitingDesc, summary.Waiting[cause], rule.Name, string(cause))
		}
	}
}
