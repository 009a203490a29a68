package reporter

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
	"github.com/readygate/readygate/internal/version"
)

// Metrics are the metrics of a reporter. They are written in the Prometheus text format without
// the client library: it would add a quarter to the binary and to the memory of the reporter
// on every node.
type Metrics struct {
	mu      sync.Mutex
	checks  map[string]int  // by result
	writes  map[string]int  // by result
	status  map[string]bool // by condition type
	buckets []int           // one per bound, and one for longer runs
	seconds float64
	refused bool // the current configuration file is invalid
}

// bounds are the bucket bounds of the duration histogram, in seconds.
var bounds = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Results of a write.
const (
	writeSuccess = "success"
	writeError   = "error"
	writeSkipped = "skipped"
)

// NewMetrics returns metrics with every counter at zero.
func NewMetrics() *Metrics {
	return &Metrics{
		checks:  map[string]int{string(check.Healthy): 0, string(check.Unhealthy): 0, string(check.Error): 0},
		writes:  map[string]int{writeSuccess: 0, writeError: 0, writeSkipped: 0},
		status:  map[string]bool{},
		buckets: make([]int, len(bounds)+1),
	}
}

// observed counts a run of a check, and a skipped write if the run changed nothing.
func (m *Metrics) observed(conditionType, status string, result check.Result, took time.Duration, news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checks[string(result)]++
	bucket, _ := slices.BinarySearch(bounds, took.Seconds())
	m.buckets[bucket]++
	m.seconds += took.Seconds()
	if !news {
		m.writes[writeSkipped]++
	}
	m.status[conditionType] = status == nodestatus.True
}

// wrote counts a write.
func (m *Metrics) wrote(result string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes[result]++
}

// configured records whether the configuration file is valid.
func (m *Metrics) configured(valid bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = !valid
}

// forget drops the condition of a removed check.
func (m *Metrics) forget(conditionType string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.status, conditionType)
}

const prefix = "node_readiness_reporter_"

// write writes all metrics in the Prometheus text format.
func (m *Metrics) write(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	describe(w, "build_info", "gauge", "Always 1; the version is in the label version.")
	sample(w, "build_info", "version", version.Version, 1)
	describe(w, "config_valid", "gauge", "1 if the configuration file is valid, 0 if it is not and the reporter keeps the previous configuration.")
	_, _ = fmt.Fprintf(w, "%sconfig_valid %d\n", prefix, number(!m.refused))
	describe(w, "checks_total", "counter", "Number of checks by result: healthy, unhealthy, or error if the check got no valid response.")
	samples(w, "checks_total", "result", m.checks)
	describe(w, "condition_writes_total", "counter", "Number of condition writes by result: success, error, or skipped if a check changed nothing.")
	samples(w, "condition_writes_total", "result", m.writes)
	describe(w, "condition_status", "gauge", "1 if the reporter decided the status True for the condition, else 0.")
	for _, conditionType := range slices.Sorted(maps.Keys(m.status)) {
		sample(w, "condition_status", "condition", conditionType, number(m.status[conditionType]))
	}
	describe(w, "check_duration_seconds", "histogram", "Duration of checks in seconds.")
	count := 0
	for i, bound := range append(slices.Clone(bounds), 0) {
		count += m.buckets[i]
		le := strconv.FormatFloat(bound, 'g', -1, 64)
		if i == len(bounds) {
			le = "+Inf"
		}
		sample(w, "check_duration_seconds_bucket", "le", le, count)
	}
	_, _ = fmt.Fprintf(w, "%scheck_duration_seconds_sum %v\n%scheck_duration_seconds_count %d\n", prefix, m.seconds, prefix, count)
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

func describe(w io.Writer, name, kind, help string) {
	_, _ = fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name, kind)
}

func samples(w io.Writer, name, label string, values map[string]int) {
	for _, of := range slices.Sorted(maps.Keys(values)) {
		sample(w, name, label, of, values[of])
	}
}

func sample(w io.Writer, name, label, of string, value int) {
	_, _ = fmt.Fprintf(w, "%s%s{%s=%q} %d\n", prefix, name, label, of, value)
}
