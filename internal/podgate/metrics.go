package podgate

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/readygate/readygate/internal/core/podrule"
)

// Metrics are the metrics of an agent.
type Metrics struct {
	readySeconds     prometheus.Histogram
	componentSeconds *prometheus.HistogramVec
	last             *prometheus.CounterVec
	patches          *prometheus.CounterVec
	probes           *prometheus.CounterVec
	touches          prometheus.Counter
}

// buckets reach from a pod that is ready immediately to one that needs attention.
var buckets = []float64{.1, .25, .5, 1, 1.5, 2.5, 5, 10, 20, 40, 80, 160, 320}

// NewMetrics creates and registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		readySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "readygate_podgate_ready_seconds", Help: "Time from the creation of a pod's sandbox until all components were ready.", Buckets: buckets}),
		componentSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "readygate_podgate_component_ready_seconds", Help: "Time from the creation of a pod's sandbox until a component was ready.", Buckets: buckets}, []string{"rule", "component"}),
		last: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "readygate_podgate_last_component_total", Help: "Number of pods for which a component was the last one to become ready."}, []string{"rule", "component"}),
		patches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "readygate_podgate_patches_total", Help: "Number of patches of pod statuses by result: written, gone, refused or failed."}, []string{"result"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "readygate_podgate_probes_total", Help: "Number of probes of components on the node by kind and answer."}, []string{"kind", "answer"}),
		touches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "readygate_podgate_latch_touches_total", Help: "Number of latch keys written again because the latch was still closed some seconds after its gate opened."}),
	}
	registerer.MustRegister(m.readySeconds, m.componentSeconds, m.last, m.patches, m.probes, m.touches)
	return m
}

func (m *Metrics) patched(err error) {
	result := "written"
	switch {
	case podrule.Missed(err):
		result = "gone"
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		result = "refused"
	case err != nil:
		result = "failed"
	}
	m.patches.WithLabelValues(result).Inc()
}

func (m *Metrics) asked(probe podrule.Probe, answer podrule.Answer) {
	m.probes.WithLabelValues(string(probe.Kind), map[bool]string{true: "yes", false: "no"}[answer.Yes]).Inc()
}

// ready records a pod whose components are all ready: how long each took, and which was the last one.
func (m *Metrics) ready(pod *corev1.Pod, v *podrule.Verdict, asked map[podrule.Probe]time.Time, now time.Time) {
	since := podrule.SandboxSince(pod)
	if since.IsZero() {
		return
	}
	m.readySeconds.Observe(max(0, now.Sub(since).Seconds()))
	var last podrule.Yes
	for _, yes := range podrule.YesTimes(pod, v, asked) {
		m.componentSeconds.WithLabelValues(yes.Rule, yes.Component).Observe(max(0, yes.At.Sub(since).Seconds()))
		if yes.At.After(last.At) {
			last = yes
		}
	}
	if last.Component != "" {
		m.last.WithLabelValues(last.Rule, last.Component).Inc()
	}
}

// collector counts the waiting pods at the time of the scrape.
type collector struct{ agent *Agent }

var (
	waitingDesc = prometheus.NewDesc("readygate_podgate_waiting_pods", "Number of pods of the node whose gate or latch is closed.", []string{"rule"}, nil)
	closedDesc  = prometheus.NewDesc("readygate_podgate_latch_closed_pods", "Number of pods of the node whose gate is open and whose latch is still closed; included in readygate_podgate_waiting_pods.", []string{"rule"}, nil)
	lateDesc    = prometheus.NewDesc("readygate_podgate_late_pods", "Number of pods of the node that have waited longer than deadlineSeconds of the rule.", []string{"rule"}, nil)
)

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	out <- waitingDesc
	out <- lateDesc
	out <- closedDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for rule, tally := range c.agent.Tallies() {
		out <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(tally.Waiting), rule.Name)
		out <- prometheus.MustNewConstMetric(lateDesc, prometheus.GaugeValue, float64(tally.Late), rule.Name)
		out <- prometheus.MustNewConstMetric(closedDesc, prometheus.GaugeValue, float64(tally.LatchClosed), rule.Name)
	}
}
