package reporter_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/reporter"
)

const head = "apiVersion: readygate.dev/v1alpha1\nkind: ReporterConfig\n"

func TestTheExampleIsValid(t *testing.T) {
	config, err := reporter.ParseConfig([]byte(reporter.Example))
	if err != nil {
		t.Fatal(err)
	}
	if err := reporter.Tasks(config); err != nil {
		t.Error(err)
	}
}

// Every kind of check, and every field.
func TestAFileMayHoldAnyNumberOfChecks(t *testing.T) {
	config, err := reporter.ParseConfig([]byte(head + `
heartbeatPeriod: 1m
checks:
- conditionType: example.com/A
  interval: 15s
  timeout: 1s
  successThreshold: 2
  failureThreshold: 5
  holdDown: 30s
  http: {url: "https://localhost:8443/healthz", status: ["200", "400-499"], headers: {brief: "true"}, insecureSkipVerify: true}
- conditionType: example.com/B
  http: {url: "http://localhost/healthz", unixSocket: /run/agent.sock}
- conditionType: example.com/C
  tcp: {address: "localhost:6784"}
- conditionType: example.com/D
  grpc: {address: "localhost:9879", service: agent, tls: {caFile: /etc/agent/ca.crt, serverName: agent}}
- conditionType: example.com/E
  file: {path: /var/lib/calico/nodename, newerThan: 5m, contains: ready}
- conditionType: example.com/F
  exec: {command: ["/usr/bin/nvidia-smi", "-L"]}
- conditionType: example.com/G
  cni: {confDir: /etc/cni/net.d, binDirs: [/opt/cni/bin]}
- conditionType: example.com/H
  cni: {canary: {target: 10.96.0.10, stateDir: /var/lib/readygate/canary}}
- conditionType: example.com/I
  peers: {ready: "network-reporter:9445", everyone: "network-reporter-all:9445", patience: 10s}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := reporter.Tasks(config); err != nil {
		t.Error(err)
	}
}

// Errors name the invalid field and a valid value.
func TestAWrongFileIsRejected(t *testing.T) {
	http := `http: {url: "http://localhost"}`
	for text, want := range map[string]string{
		"":                              "the file is empty; a valid file",
		"{":                             "the file is not YAML",
		"[]":                            "is array, must be an object",
		"kind: ReporterConfig":          `apiVersion is "" and kind "ReporterConfig", must be readygate.dev/v1alpha1 and ReporterConfig`,
		head:                            "checks is empty, must have at least one",
		head + "check: []":              `unknown field "check"`,
		head + "checks: {}":             "checks is object, must be a list",
		head + "checks: [a]":            "checks is string, must be an object",
		head + "checks: []\nchecks: []": `key "checks" already set in map`,
		reporter.Example + "---\n" + reporter.Example:                                         "the file has several YAML documents",
		head + "heartbeatPeriod: 90000h\nchecks: [{}]":                                        "heartbeatPeriod is 90000h0m0s, must be at most 8760h0m0s",
		head + "heartbeatPeriod: 5\nchecks: [{}]":                                             "heartbeatPeriod is 5, must be a duration in h, m, s or ms, e.g. 5m",
		head + "heartbeatPeriod: 1ms\nchecks: [{}]":                                           "heartbeatPeriod is 1ms, must be at least 1s, e.g. 5m",
		head + "checks: [{" + http + "}]":                                                     "checks[0].conditionType is empty, must be the type of a node condition, e.g. example.com/NetworkReady",
		head + "checks: [{conditionType: Ready, " + http + "}]":                               `checks[0].conditionType is "Ready", which Kubernetes itself writes; must be a type of your own`,
		head + "checks: [{conditionType: networkunavailable, " + http + "}]":                  `which Kubernetes itself writes`,
		head + `checks: [{conditionType: "a b", ` + http + "}]":                               `checks[0].conditionType is "a b", must be a name with an optional domain before it`,
		head + `checks: [{conditionType: "` + strings.Repeat("a", 317) + `", ` + http + "}]":  "checks[0].conditionType has 317 characters, must have at most 316",
		head + "checks: [{conditionType: a, " + http + "}, {conditionType: a, " + http + "}]": `checks[1].conditionType is "a", which checks[0] uses`,
		head + "checks: [{conditionType: a, interval: 1ms, " + http + "}]":                    "checks[0].interval is 1ms, must be at least 100ms, e.g. 15s",
		head + "checks: [{conditionType: a, interval: soon, " + http + "}]":                   `checks[0].interval is "soon", must be a duration in h, m, s or ms, e.g. 15s`,
		head + "checks: [{conditionType: a, timeout: 0s, " + http + "}]":                      "checks[0].timeout is 0s, must be at least 1ms, e.g. 2s",
		head + "checks: [{conditionType: a, holdDown: -1s, " + http + "}]":                    "checks[0].holdDown is -1s, must be at least 0s, e.g. 15s",
		head + "checks: [{conditionType: a, failureThreshold: 0, " + http + "}]":              "checks[0].failureThreshold is 0, must be at least 1, e.g. failureThreshold: 3",
		head + "checks: [{conditionType: a, successThreshold: -1, " + http + "}]":             "checks[0].successThreshold is -1, must be at least 1",
		head + "checks: [{conditionType: a, successThreshold: many, " + http + "}]":           "checks.successThreshold is string, must be an integer",
		head + "checks: [{conditionType: a}]":                                                 "checks[0].http is not set, nor is tcp, grpc, file, exec, cni or peers",
		head + `checks: [{conditionType: a, ` + http + `, tcp: {address: "a:1"}}]`:            "checks[0].http is set together with tcp",
		head + `checks: [{conditionType: a, http: {url: "localhost"}}]`:                       `checks[0].http.url is "localhost", must be a URL with a host`,
		head + `checks: [{conditionType: a, http: {urls: "localhost"}}]`:                      `unknown field "checks[0].http.urls"`,
		head + `checks: [{conditionType: a, http: "http://localhost"}]`:                       "checks.http is string, must be an object",
		head + `checks: [{conditionType: a, peers: {ready: none}}]`:                           `checks[0].peers.ready is "none", and the variables NONE_SERVICE_HOST and NONE_SERVICE_PORT are not set`,
		head + `checks: [{conditionType: a, cni: {canary: {target: "::::"}}}]`:                `checks[0].cni.canary.target is "::::", must be an IP address or host:port`,
		head + `checks: [{conditionType: a, cni: {binDirs: [bin]}}]`:                          `checks[0].cni.binDirs[0] is "bin", must be an absolute path, e.g. /opt/cni/bin`,
		head + "checks: [" + strings.Repeat("{conditionType: a, "+http+"}, ", 101) + "]":      "checks has 101 entries, must have at most 100",
	} {
		config, err := reporter.ParseConfig([]byte(text))
		if err == nil {
			err = reporter.Tasks(config)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q it says\n  %v\nwant\n  %s", text, err, want)
		}
	}
}

// The parser returns an error for every invalid file, and a parsed file can be compiled
// or the error names a field.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(reporter.Example))
	f.Add([]byte(head + "heartbeatPeriod: 5\nchecks: [{conditionType: a, interval: 1e9, exec: {command: [a]}}]"))
	f.Add([]byte(head + `checks: [{conditionType: a, grpc: {address: "unix:///a"}, timeout: null}]`))
	f.Add([]byte(head + `checks: [{conditionType: a, peers: {ready: "a:1", everyone: b, patience: ~}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := reporter.ParseConfig(data)
		if err != nil {
			return
		}
		if err := reporter.Tasks(config); err != nil && !strings.HasPrefix(err.Error(), "checks[") {
			t.Errorf("an error names no field: %v", err)
		}
	})
}
