package reporter_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/readygate/readygate/internal/reporter"
	"github.com/readygate/readygate/internal/reporter/check"
	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// Prometheus can parse the metrics.
func TestMetricsAreReadByPrometheus(t *testing.T) {
	m := reporter.NewMetrics()
	reporter.Observed(m, "example.com/A", nodestatus.True, check.Healthy, 2*time.Millisecond, true)
	reporter.Observed(m, "example.com/A", nodestatus.True, check.Healthy, time.Minute, false)
	reporter.Observed(m, `example.com/"B\`, nodestatus.False, check.Error, 5*time.Millisecond, true)
	reporter.Wrote(m, "success")
	var text bytes.Buffer
	reporter.Write(m, &text)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "node_readiness_reporter_"
	for name, want := range map[string]map[string]float64{
		"checks_total":           {"healthy": 2, "unhealthy": 0, "error": 1},
		"condition_writes_total": {"success": 1, "error": 0, "skipped": 1},
		"condition_status":       {"example.com/A": 1, `example.com/"B\`: 0},
		"build_info":             {"dev": 1},
	} {
		got := map[string]float64{}
		for _, metric := range families[prefix+name].GetMetric() {
			got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
		if len(got) != len(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		for label, value := range want {
			if got[label] != value {
				t.Errorf("%s of %s is %v, want %v", name, label, got[label], value)
			}
		}
	}
	durations := families[prefix+"check_duration_seconds"]
	h := durations.GetMetric()[0].GetHistogram()
	if durations.GetType() != dto.MetricType_HISTOGRAM || h.GetSampleCount() != 3 || math.Abs(h.GetSampleSum()-60.007) > 1e-9 {
		t.Errorf("durations are %v", durations)
	}
	for _, bucket := range h.GetBucket() {
		want := uint64(2)
		switch {
		case bucket.GetUpperBound() < 0.002:
			want = 0
		case bucket.GetUpperBound() > 60:
			want = 3
		}
		if bucket.GetUpperBound() == 0.005 && bucket.GetCumulativeCount() != 2 {
			t.Errorf("what took exactly as long as a bound is not in its bucket: %v", bucket)
		}
		if bucket.GetCumulativeCount() != want {
			t.Errorf("bucket %v has %d, want %d", bucket.GetUpperBound(), bucket.GetCumulativeCount(), want)
		}
	}
}

func TestWhenToWrite(t *testing.T) {
	const long, second = 1000 * time.Hour, time.Second
	for what, tc := range map[string]struct {
		wait, least, most time.Duration
	}{
		"there is nothing to say":                      {reporter.Waiting(reporter.Nothing, long, 0, 0), time.Hour, time.Hour},
		"the first word":                               {reporter.Waiting(reporter.Change, long, 0, 1), 0, 0},
		"a change right after a write":                 {reporter.Waiting(reporter.Change, 0, 9, 1), 0, 0},
		"other words right after a write":              {reporter.Waiting(reporter.MessageOnly, 0, 0, 1), 9 * second, 10 * second},
		"other words long after a write":               {reporter.Waiting(reporter.MessageOnly, time.Minute, 0, 1), -long, 0},
		"other words for the third time":               {reporter.Waiting(reporter.MessageOnly, 0, 2, 1), 39 * second, 40 * second},
		"other words for the hundredth time":           {reporter.Waiting(reporter.MessageOnly, 0, 100, 1), 299 * second, 300 * second},
		"nothing new right after a write":              {reporter.Waiting(reporter.Nothing, 0, 0, 1), 59 * time.Minute, time.Hour},
		"nothing new, a heartbeat after a write":       {reporter.Waiting(reporter.Nothing, time.Hour, 0, 1), -second, 0},
		"an error":                                     {reporter.BackOff(errors.New("away")), 250 * time.Millisecond, 750 * time.Millisecond},
		"the API server asks for time":                 {reporter.BackOff(&nodestatus.StatusError{RetryAfter: 20 * second}), 10 * second, 30 * second},
		"the API server asks for more time than it is": {reporter.BackOff(&nodestatus.StatusError{RetryAfter: time.Hour}), 30 * second, 90 * second},
	} {
		if tc.wait < tc.least || tc.wait > tc.most {
			t.Errorf("%s: waits %v, want %v to %v", what, tc.wait, tc.least, tc.most)
		}
	}
}
