package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/noderule"
	"github.com/readygate/readygate/internal/manager/podrule"
	"github.com/readygate/readygate/internal/podgate"
	"github.com/readygate/readygate/internal/testenv"
)

// monitor returns an object of the Prometheus Operator.
func monitor(t *testing.T, all objects, kind, name string) map[string]any {
	t.Helper()
	for _, obj := range each[*unstructured.Unstructured](all) {
		if obj.GetKind() == kind && obj.GetName() == name {
			return obj.Object
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

// TestMonitorsFindWhatTheyScrape: the labels and the port name of each monitor match what the chart renders.
func TestMonitorsFindWhatTheyScrape(t *testing.T) {
	all := render(t, ci(t, "full"))
	for kind, test := range map[string]struct {
		name, endpoints, job string
		labels               map[string]string
		port                 []corev1.ContainerPort
	}{
		"ServiceMonitor": {"readygate-manager", "endpoints", "readygate-manager", get[*corev1.Service](t, all, "readygate-manager-metrics").Labels, pods(all)["readygate-manager"].Containers[0].Ports},
		"PodMonitor":     {"readygate-reporters", "podMetricsEndpoints", "readygate-reporter", daemonSet(t, all, "everything").Spec.Template.Labels, pods(all)["readygate-reporter-everything"].Containers[0].Ports},
	} {
		object := monitor(t, all, kind, test.name)
		selector, _, err := unstructured.NestedStringMap(object, "spec", "selector", "matchLabels")
		if err != nil || len(selector) == 0 || !fits(selector, test.labels) {
			t.Errorf("the %s selects %v, the scraped object has %v", kind, selector, test.labels)
		}
		endpoints, _, _ := unstructured.NestedSlice(object, "spec", test.endpoints)
		endpoint := endpoints[0].(map[string]any)
		if !slices.ContainsFunc(test.port, func(port corev1.ContainerPort) bool { return port.Name == endpoint["port"] }) {
			t.Errorf("the %s scrapes the port %v, the container has %v", kind, endpoint["port"], test.port)
		}
		// The alerts select the jobs by these names.
		if job := endpoint["relabelings"].([]any)[0].(map[string]any); job["targetLabel"] != "job" || job["replacement"] != test.job {
			t.Errorf("the %s sets the job label by %v", kind, job)
		}
	}
	if found := each[*unstructured.Unstructured](render(t, "")); len(found) > 0 {
		t.Errorf("%s is rendered by default", found[0].GetName())
	}
}

// TestAlertsFireWhenTheyShould runs the unit tests of the alerts with promtool.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	out, err := exec.Command(tool(t, "promtool"), "test", "rules", filepath.Join(chartDir(), "files", "alerts_test.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// TestAlertsDescribeWhatToDo: promtool also accepts the alerts as the chart renders them.
func TestAlertsDescribeWhatToDo(t *testing.T) {
	rendered, err := yaml.Marshal(monitor(t, render(t, ci(t, "full")), "PrometheusRule", "readygate")["spec"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(file, rendered, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool(t, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var read struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(rendered, &read); err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(chartDir(), "files", "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range read.Groups {
		for _, one := range group.Rules {
			for _, annotation := range []string{"summary", "description", "action"} {
				if one.Annotations[annotation] == "" {
					t.Errorf("%s has no %s", one.Alert, annotation)
				}
			}
			if one.Labels["severity"] == "" {
				t.Errorf("%s has no severity", one.Alert)
			}
			if !strings.Contains(string(tests), one.Alert) {
				t.Errorf("%s has no test", one.Alert)
			}
			if one.Alert == "ReadygateNodesHeldLong" && one.For != "10m" {
				t.Errorf("heldFor is 10m, but %s has for: %s", one.Alert, one.For)
			}
			wantMetrics(t, one.Alert, one.Expr)
		}
	}
}

// TestDashboardShowsMetricsThatExist: a program of Readygate serves each metric of the dashboard.
func TestDashboardShowsMetricsThatExist(t *testing.T) {
	config := get[*corev1.ConfigMap](t, render(t, "monitoring: {dashboard: {enabled: true}}"), "readygate-dashboard")
	if config.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the labels %v lack that by which Grafana finds the dashboard", config.Labels)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(config.Data["readygate.json"]), &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.Title == "" || (panel.Type != "row") != (len(panel.Targets) > 0) {
			t.Errorf("panel %d %q has a duplicate ID, no title, or no query", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			wantMetrics(t, panel.Title, target.Expr)
		}
	}
	if len(ids) < 10 {
		t.Errorf("the dashboard has %d panels", len(ids))
	}
}

// metricName matches metric names in an expression: names with an underscore that are not functions.
var metricName = regexp.MustCompile(`\b(?:up|[a-z]+_[a-z_]+)\b(?:\s*\()?`)

var functions = []string{"histogram_quantile", "max_over_time", "__rate_interval", "rate_interval"}

// wantMetrics checks that a program of Readygate serves the metrics in an expression.
func wantMetrics(t *testing.T, where, expr string) {
	t.Helper()
	found := 0
	for _, name := range metricName.FindAllString(regexp.MustCompile(`"[^"]*"|\$__rate_interval`).ReplaceAllString(expr, ""), -1) {
		name = strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(name, "(")), "_bucket")
		if slices.Contains(functions, name) {
			continue
		}
		found++
		if !served(t)[name] {
			t.Errorf("%s: no program serves the metric %s", where, name)
		}
	}
	if found == 0 {
		t.Errorf("%s: no metric in %q", where, expr)
	}
}

var described = regexp.MustCompile(`fqName: "([^"]+)"`)

// served returns the names of all metrics of the manager, the reporter and podgate, and those that
// Prometheus adds.
func served(t *testing.T) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	admission.NewMetrics(registry)
	node.NewMetrics(registry)
	noderule.NewMetrics(registry)
	podrule.NewMetrics(registry)
	podgate.NewMetrics(registry)
	leadership.RegisterMetrics(registry, nil, nil)
	registry.MustRegister(noderule.NewCollector(nil, make(chan struct{})))
	names := map[string]bool{"up": true, "node_readiness_build_info": true}
	for _, collector := range []prometheus.Collector{registry, metrics.Registry.(prometheus.Collector)} {
		descs := make(chan *prometheus.Desc)
		go func() {
			collector.Describe(descs)
			close(descs)
		}()
		for desc := range descs {
			names[described.FindStringSubmatch(desc.String())[1]] = true
		}
	}
	maps.Copy(names, reporterMetrics(t))
	return names
}

// reporterMetrics reads the metrics from the source of the reporter, which writes them without a client library.
func reporterMetrics(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "internal", "reporter", "metrics.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`describe\(w, "([a-z_]+)"`).FindAllStringSubmatch(string(data), -1) {
		names["node_readiness_reporter_"+found[1]] = true
	}
	if len(names) != 6 {
		t.Fatalf("found the metrics %v of the reporter", names)
	}
	return names
}
