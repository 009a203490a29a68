package reporter_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter"
)

func variables(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

// The environment variables of the guides.
func TestTheGuidesVariables(t *testing.T) {
	env, err := reporter.ReadEnvironment(variables(map[string]string{
		"NODE_NAME": "worker-1", "CHECK_ENDPOINT": "http://localhost:9099/readiness", "CONDITION_TYPE": "network.k8s.io/CalicoReady", "CHECK_INTERVAL": "15s",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if env.Node != "worker-1" || env.Heartbeat != 5*time.Minute || env.MetricsAddr != ":9445" || env.AsNode ||
		env.Check.ConditionType != "network.k8s.io/CalicoReady" || env.Check.Interval.Duration != 15*time.Second || env.Check.HTTP.URL != "http://localhost:9099/readiness" {
		t.Errorf("read as %+v, %+v", env, env.Check)
	}
	env, err = reporter.ReadEnvironment(variables(map[string]string{
		"CHECK_ENDPOINT": "http://localhost:9099/readiness", "CONDITION_TYPE": "projectcalico.org/CalicoReady",
		"HEARTBEAT_PERIOD": "1m", "IMPERSONATE_NODE": "true", "METRICS_BIND_ADDRESS": "0",
	}))
	if err != nil || env.Node != "" || env.Check.Interval.Duration != 30*time.Second || env.Heartbeat != time.Minute || !env.AsNode || env.MetricsAddr != "" {
		t.Errorf("read as %+v, %v", env, err)
	}
}

func TestAnErrorNamesTheWrongVariable(t *testing.T) {
	const endpoint = "http://localhost:9099/readiness"
	for _, tc := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"CHECK_ENDPOINT": endpoint}, "CONDITION_TYPE is empty, must be the type of a node condition, e.g. example.com/NetworkReady"},
		{map[string]string{"CONDITION_TYPE": "Ready", "CHECK_ENDPOINT": endpoint}, `CONDITION_TYPE is "Ready", which Kubernetes itself writes; must be a type of your own, e.g. example.com/NetworkReady`},
		{map[string]string{"CONDITION_TYPE": "a/B"}, "CHECK_ENDPOINT is not set, must be the endpoint to check, e.g. CHECK_ENDPOINT=http://localhost:9099/readiness"},
		{map[string]string{"CONDITION_TYPE": "a/B", "CHECK_ENDPOINT": "localhost:9099"}, `CHECK_ENDPOINT: "localhost:9099" has no scheme, must have one, e.g. http://localhost:9099/readiness`},
		{map[string]string{"CONDITION_TYPE": "a/B", "CHECK_ENDPOINT": "ftp://localhost"}, `CHECK_ENDPOINT: "ftp://localhost" begins with ftp://, must begin with http://, https://, tcp://, grpc:// or file://, e.g. http://localhost:9099/readiness; other kinds of checks need a configuration file (--config)`},
		{map[string]string{"CONDITION_TYPE": "a/B", "CHECK_ENDPOINT": endpoint, "CHECK_INTERVAL": "30"}, `CHECK_INTERVAL is "30", must be a duration in h, m, s or ms, e.g. CHECK_INTERVAL=30s`},
		{map[string]string{"CONDITION_TYPE": "a/B", "CHECK_ENDPOINT": endpoint, "CHECK_INTERVAL": "-1s"}, `CHECK_INTERVAL is -1s, must be at least 100ms, e.g. CHECK_INTERVAL=30s`},
		{map[string]string{"CONDITION_TYPE": "a/B", "CHECK_ENDPOINT": endpoint, "CHECK_TIMEOUT": "x"}, `CHECK_TIMEOUT is "x", must be a duration in h, m, s or ms, e.g. CHECK_TIMEOUT=2s`},
		{map[string]string{"CHECK_INTERVAL": "30s"}, "CONDITION_TYPE is empty, must be the type of a node condition, e.g. example.com/NetworkReady"},
		{map[string]string{"HEARTBEAT_PERIOD": "never"}, `HEARTBEAT_PERIOD is "never", must be a duration in h, m, s or ms, e.g. HEARTBEAT_PERIOD=5m0s`},
		{map[string]string{"IMPERSONATE_NODE": "yes"}, `IMPERSONATE_NODE is "yes", must be true or false, e.g. IMPERSONATE_NODE=true`},
		{map[string]string{"METRICS_BIND_ADDRESS": "9445"}, `METRICS_BIND_ADDRESS is "9445", must be an address with a port, e.g. METRICS_BIND_ADDRESS=:9445 or 127.0.0.1:9445; 0 disables the server`},
		{map[string]string{"METRICS_BIND_ADDRESS": ":99999"}, `METRICS_BIND_ADDRESS is ":99999", must be an address with a port, e.g. METRICS_BIND_ADDRESS=:9445 or 127.0.0.1:9445; 0 disables the server`},
		{map[string]string{"NODE_NAME": ".."}, `NODE_NAME is "..", must be the name of a node, e.g. spec.nodeName of the pod`},
		{map[string]string{"NODE_NAME": "a\nb"}, `NODE_NAME is "a\nb", must be the name of a node, e.g. spec.nodeName of the pod`},
		{map[string]string{"NODE_NAME": "../x"}, `NODE_NAME is "../x", must be the name of a node, e.g. spec.nodeName of the pod`},
	} {
		if _, err := reporter.ReadEnvironment(variables(tc.given)); err == nil || err.Error() != tc.want {
			t.Errorf("%v\n got %v\nwant %s", tc.given, err, tc.want)
		}
	}
}
