package reporter_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
)

// newLargeStation returns a station with a realistically large node.
func newLargeStation(b *testing.B, id string) *station {
	b.Helper()
	s := newStationNamed(b, cluster(b), id)
	node := &corev1.Node{}
	if err := s.Client.Get(b.Context(), client.ObjectKey{Name: s.node}, node); err != nil {
		b.Fatal(err)
	}
	for i := range 50 {
		image := corev1.ContainerImage{SizeBytes: 100 << 20}
		for tag := range 5 {
			image.Names = append(image.Names, fmt.Sprintf("registry.example.com/platform/%s/component-%02d:v1.%d.0-%064x", strings.Repeat("team-", 8), i, tag, i))
		}
		node.Status.Images = append(node.Status.Images, image)
	}
	if err := s.Client.Status().Update(b.Context(), node); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkFootprint measures a reporter with three checks over the benchtime. The budgets: binary ≤ 15 MB, resident
// memory ≤ 12 MiB, CPU ≤ 1 % of one core.
func BenchmarkFootprint(b *testing.B) {
	const interval = time.Second
	binary, err := os.Stat(filepath.Join(testenv.Root(), "bin", "readygate-reporter"))
	if err != nil {
		b.Skipf("is it built? make build: %v", err)
	}
	s, e := newLargeStation(b, nameOf(b)), newEndpoint(b, http.StatusOK)
	config := []byte("apiVersion: readygate.dev/v1alpha1\nkind: ReporterConfig\nchecks:\n")
	conditions := []string{"bench.example.com/A", "bench.example.com/B", "bench.example.com/C"}
	for _, condition := range conditions {
		config = fmt.Appendf(config, "- {conditionType: %s, interval: %v, http: {url: %q}}\n", condition, interval, e.URL)
	}
	file := filepath.Join(b.TempDir(), "config.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		b.Fatal(err)
	}
	p := testenv.StartReporter(b, s.kubeconfig, nil, "--config", file)
	for _, condition := range conditions {
		s.eventually(b, condition, "True", is(corev1.ConditionTrue))
	}
	usage := func() testenv.Usage {
		u, err := testenv.UsageOf(p.Pid())
		if err != nil {
			b.Fatal(err)
		}
		return u
	}
	before := usage()
	for b.Loop() {
		time.Sleep(interval)
	}
	after := usage()
	b.ReportMetric(float64(binary.Size())/1e6, "MB-binary")
	b.ReportMetric(float64(after.RSS)/(1<<20), "MiB-resident")
	b.ReportMetric(float64(after.Peak)/(1<<20), "MiB-peak")
	b.ReportMetric(100*(after.CPU-before.CPU).Seconds()/b.Elapsed().Seconds(), "%-CPU")
	b.ReportMetric(0, "ns/op") // the length of a pause
}

// BenchmarkDelay measures the time from the first 200 of a component to the condition, of components that become ready at a
// random time after the condition is False. The budget: p99 ≤ 1.2 s.
func BenchmarkDelay(b *testing.B) {
	var delays testenv.Distribution
	for b.Loop() {
		delays = append(delays, delayOf(b, newLargeStation(b, fmt.Sprintf("%s-%d", nameOf(b), len(delays)))))
	}
	b.ReportMetric(delays.Quantile(50).Seconds(), "s-p50")
	b.ReportMetric(delays.Quantile(99).Seconds(), "s-p99")
	b.ReportMetric(delays.Quantile(100).Seconds(), "s-max")
	b.ReportMetric(0, "ns/op") // mostly pauses
}

// delayOf starts a reporter, makes its component ready, and returns how long the condition took.
func delayOf(b *testing.B, s *station) time.Duration {
	e := newEndpoint(b, http.StatusServiceUnavailable)
	events, err := s.Client.Watch(b.Context(), &corev1.NodeList{}, client.MatchingFields{"metadata.name": s.node})
	if err != nil {
		b.Fatal(err)
	}
	defer events.Stop()
	defer s.start(b, e, "CHECK_INTERVAL=15s").Kill()
	s.eventually(b, networkReady, "False", is(corev1.ConditionFalse))
	time.Sleep(rand.N(2 * time.Second)) // longer than the pause between two checks
	ready := time.Now()
	e.answer(http.StatusOK)
	for event := range events.ResultChan() {
		node, ok := event.Object.(*corev1.Node)
		if ok && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == networkReady && c.Status == corev1.ConditionTrue }) {
			return time.Since(ready)
		}
	}
	b.Fatal("the watch ended")
	return 0
}
