package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/reporter"
)

// a is a reporter with one check.
const a = "{name: a, checks: [{conditionType: example.com/A, tcp: {address: 'agent.example.com:1'}}]}"

// TestWrongValuesAreRefused: the error names the value.
func TestWrongValuesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		errors []string
	}{
		"a value that does not exist":      {"manager: {replica: 3}", []string{"manager", "replica"}},
		"a wrong type":                     {"manager: {replicas: two}", []string{"manager", "replicas", "integer"}},
		"no replica":                       {"manager: {replicas: 0}", []string{"replicas", "1"}},
		"an invalid digest":                {"manager: {image: {digest: abc}}", []string{"digest", "sha256"}},
		"policies maybe":                   {"policies: {managed: maybe}", []string{"policies", "managed", "boolean"}},
		"taintNewNodes maybe":              {"taintNewNodes: {enabled: maybe}", []string{"taintNewNodes", "enabled", "auto"}},
		"a reporter without a check":       {"reporters: [{name: a, checks: []}]", []string{"reporters", "checks"}},
		"a reporter without a name":        {"reporters: [{checks: [{conditionType: A, cni: {}}]}]", []string{"reporters", "name"}},
		"an invalid name":                  {"reporters: [{name: A_b, checks: [{conditionType: A, cni: {}}]}]", []string{`reporters[0].name is "A_b"`, "lower-case", "calico"}},
		"a check of two kinds":             {"reporters: [{name: a, checks: [{conditionType: A, cni: {}, tcp: {address: b}}]}]", []string{"reporters[0].checks[0] has tcp and cni", "exactly one of"}},
		"a check of no kind":               {"reporters: [{name: a, checks: [{conditionType: A}]}]", []string{"reporters[0].checks[0] has no check", "http: {url:"}},
		"an unknown field":                 {"reporters: [{name: a, checks: [{conditionType: A, http: {uri: b}}]}]", []string{"http", "uri"}},
		"an invalid condition type":        {`reporters: [{name: a, checks: [{conditionType: 'a"b', cni: {}}]}]`, []string{`reporters[0].checks[0].conditionType is "a\"b"`, "example.com/NetworkReady"}},
		"a duration without a unit":        {"reporters: [{name: a, checks: [{conditionType: A, interval: 15, cni: {}}]}]", []string{"interval", "string"}},
		"an invalid duration":              {"reporters: [{name: a, checks: [{conditionType: A, holdDown: 1 min, cni: {}}]}]", []string{`reporters[0].checks[0].holdDown is "1 min"`, "15s"}},
		"an invalid age":                   {"reporters: [{name: a, checks: [{conditionType: A, file: {path: /a, newerThan: 1d}}]}]", []string{`checks[0].file.newerThan is "1d"`, "15s"}},
		"an invalid patience":              {"reporters: [{name: a, checks: [{conditionType: A, peers: {patience: '30'}}]}]", []string{`checks[0].peers.patience is "30"`, "15s"}},
		"an invalid heartbeat":             {"reporters: [{name: a, heartbeatPeriod: '', checks: [{conditionType: A, cni: {}}]}]", []string{`reporters[0].heartbeatPeriod is ""`, "15s"}},
		"an invalid scrape interval":       {"monitoring: {serviceMonitor: {interval: often}}", []string{`monitoring.serviceMonitor.interval is "often"`, "15s"}},
		"no registry":                      {"image: {registry: ''}", []string{`image.registry is ""`, "readygate/readygate-manager", "Docker Hub", "image.registry=registry.example.com"}},
		"no registry for a reporter":       {"image: {registry: ''}\nmanager: {image: {repository: registry.example.com/manager}}\nreporters: [" + a + "]", []string{`image.registry is ""`, "readygate/readygate-reporter"}},
		"a registry with a scheme":         {"image: {registry: 'https://registry.example.com'}", []string{`image.registry is "https://registry.example.com"`, "is a URL", "registry.example.com/team"}},
		"a registry in capitals":           {"image: {registry: registry.example.com/Team}", []string{`image.registry is "registry.example.com/Team"`, "lower case", "registry.example.com/team"}},
		"an invalid memory quantity":       {"manager: {resources: {limits: {memory: 256MB}}}", []string{`manager.resources.limits.memory is "256MB"`, "64Mi"}},
		"an invalid CPU quantity":          {"reporters: [{name: a, resources: {requests: {cpu: half}}, checks: [{conditionType: A, cni: {}}]}]", []string{`reporters[0].resources.requests.cpu is "half"`, "50m"}},
		"a URL without a scheme":           {"reporters: [{name: a, hostNetwork: true, checks: [{conditionType: A, http: {url: 'localhost:1'}}]}]", []string{`reporters[0].checks[0].http.url is "localhost:1"`, "http://localhost:9099/readiness"}},
		"an address with a scheme":         {"reporters: [{name: a, hostNetwork: true, checks: [{conditionType: A, tcp: {address: 'tcp://localhost:1'}}]}]", []string{`reporters[0].checks[0].tcp.address is "tcp://localhost:1"`, "localhost:6784"}},
		"an address without a port":        {"reporters: [{name: a, hostNetwork: true, checks: [{conditionType: A, grpc: {address: localhost}}]}]", []string{`reporters[0].checks[0].grpc.address is "localhost"`, "localhost:6784", "unix:///"}},
		"http to the pod itself":           {"reporters: [{name: a, checks: [{conditionType: A, http: {url: 'http://localhost:9099/readiness'}}]}]", []string{`reporters[0].checks[0].http.url is "http://localhost:9099/readiness"`, "the reporter's own pod", "hostNetwork: true"}},
		"tcp to the pod itself":            {"reporters: [{name: a, hostNetwork: false, checks: [{conditionType: A, tcp: {address: '127.0.0.1:1'}}]}]", []string{"reporters[0].checks[0].tcp.address", "hostNetwork: true"}},
		"grpc to the pod itself":           {"reporters: [{name: a, checks: [{conditionType: B, cni: {}}, {conditionType: A, grpc: {address: '[::1]:1'}}]}]", []string{"reporters[0].checks[1].grpc.address", "hostNetwork: true"}},
		"a ServiceMonitor without metrics": {"{metrics: {enabled: false}, monitoring: {serviceMonitor: {enabled: true}}}", []string{"monitoring.serviceMonitor.enabled is true", "set metrics.enabled to true"}},
		"a PodMonitor without reporters":   {"monitoring: {podMonitor: {enabled: true}}", []string{"monitoring.podMonitor.enabled is true", "add an entry to reporters"}},

		"a condition of Kubernetes":   {"reporters: [{name: a, checks: [{conditionType: ready, cni: {}}]}]", []string{`reporters[0].checks[0].conditionType is "ready"`, "Kubernetes itself", "example.com/NetworkReady"}},
		"a condition twice":           {"reporters: [" + a + ", {name: b, checks: [{conditionType: example.com/A, cni: {}}]}]", []string{"reporters[1].checks[0].conditionType", "reporters[0].checks[0] reports too", "a condition of its own"}},
		"a reporter twice":            {"reporters: [" + a + ", {name: a, checks: [{conditionType: B, cni: {}}]}]", []string{`reporters[1].name is "a"`, "reporters[0]", "a name of its own"}},
		"the name of a Service":       {"reporters: [{name: a, checks: [{conditionType: A, peers: {}}]}, {name: a-all, checks: [{conditionType: B, cni: {}}]}]", []string{`reporters[1].name is "a-all"`, "reporters[0]"}},
		"peers on the node's network": {"reporters: [{name: a, hostNetwork: true, checks: [{conditionType: A, peers: {}}]}]", []string{"reporters[0]", "peers", "without hostNetwork"}},
		"a canary among pods":         {"reporters: [{name: a, hostNetwork: false, checks: [{conditionType: A, cni: {canary: {}}}]}]", []string{"reporters[0]", "canary", "leave hostNetwork out"}},
		"a canary and peers":          {"reporters: [{name: a, checks: [{conditionType: A, cni: {canary: {}}}, {conditionType: B, peers: {}}]}]", []string{"reporters[0]", "of its own"}},
		"a port twice":                {"reporters: [{name: a, hostNetwork: true, checks: [{conditionType: A, cni: {}}]}, {name: b, hostNetwork: true, checks: [{conditionType: B, cni: {}}]}]", []string{"reporters[1].metrics.port is 9445", "reporters[0]", "metrics: {port: 9451}"}},
		"a port of the manager":       {"reporters: [{name: a, hostNetwork: true, metrics: {port: 9446}, checks: [{conditionType: A, cni: {}}]}]", []string{"reporters[0].metrics.port is 9446", "manager.ports.health"}},
		"our label on everything":     {`commonLabels: {app.kubernetes.io/part-of: platform}`, []string{"commonLabels", "app.kubernetes.io/part-of", "example.com/team"}},
		"our label on the manager":    {`manager: {podLabels: {app.kubernetes.io/component: x}}`, []string{"manager.podLabels", "label of yours"}},
		"an invalid peer namespace":   {"manager: {peerNamespaces: [nrr-system, Nrr_System]}", []string{`manager.peerNamespaces[1] is "Nrr_System"`, "lower-case", "e.g. nrr-system"}},
		"peers as a string":           {"manager: {peerNamespaces: nrr-system}", []string{"manager", "peerNamespaces", "array"}},
		"API server as a URL":         {`manager: {apiServer: {host: "https://api.example.com"}}`, []string{"manager.apiServer.host", "e.g. api.example.com"}},
		"API server with a port":      {`manager: {apiServer: {host: "api.example.com:6443"}}`, []string{"manager.apiServer.host", "the port is a value of its own"}},
		"a timeout in m above 5m":     {"manager: {apiServer: {requestTimeout: 6m}}", []string{`manager.apiServer.requestTimeout is "6m"`, "at most 5m", "e.g. 60s"}},
		"a timeout in s above 5m":     {"manager: {apiServer: {requestTimeout: 301s}}", []string{`manager.apiServer.requestTimeout is "301s"`, "at most 5m", "e.g. 60s"}},
		"a timeout without a unit":    {`manager: {apiServer: {requestTimeout: "60"}}`, []string{"manager", "apiServer", "requestTimeout"}},
		"one port for both":           {"manager: {ports: {health: 1, metrics: 1}}", []string{"manager.ports.health", "must differ"}},

		"a relative directory":              {"podgate: {hostPaths: [{path: var/run/calico}]}", []string{`podgate.hostPaths[0].path is "var/run/calico"`, "absolute", "/var/run/calico"}},
		"a directory with ..":               {"podgate: {hostPaths: [{path: /var/run/../lib}]}", []string{`podgate.hostPaths[0].path is "/var/run/../lib"`, "without .."}},
		"a directory with a colon":          {"podgate: {hostPaths: [{path: '/run/a:b'}]}", []string{`podgate.hostPaths[0].path is "/run/a:b"`, "colons"}},
		"the root directory":                {"podgate: {hostPaths: [{path: /run/a}, {path: //}]}", []string{`podgate.hostPaths[1].path is "//"`, "the secrets of all pods", "/var/run/calico"}},
		"a directory twice":                 {"podgate: {hostPaths: [{path: /run/a}, {path: /run/a/}]}", []string{`podgate.hostPaths[1].path is "/run/a/"`, "and so is podgate.hostPaths[0].path"}},
		"a writable directory":              {"podgate: {hostPaths: [{path: /run/a, readOnly: false}]}", []string{"hostPaths", "readOnly"}},
		"a directory without a path":        {"podgate: {hostPaths: [{type: Directory}]}", []string{"hostPaths", "path"}},
		"a port of the manager for podgate": {"podgate: {enabled: true, metrics: {port: 9447}}", []string{"podgate.metrics.port is 9447", "manager.ports.metrics", "e.g. 9480"}},
		"one port twice in podgate":         {"podgate: {enabled: true, metrics: {port: 9478}}", []string{"podgate.metrics.port is 9478", "podgate.health.port"}},
		"a port of podgate":                 {"podgate: {enabled: true}\nreporters: [{name: a, hostNetwork: true, metrics: {port: 9477}, checks: [{conditionType: A, cni: {}}]}]", []string{"reporters[0].metrics.port is 9477", "podgate.metrics.port"}},
		"our label on podgate":              {"podgate: {podLabels: {app.kubernetes.io/component: x}}", []string{"podgate.podLabels", "label of yours"}},
		"an invalid memory of podgate":      {"podgate: {resources: {limits: {memory: 128MB}}}", []string{`podgate.resources.limits.memory is "128MB"`, "64Mi"}},
		"a PodMonitor without metrics":      {"podgate: {enabled: true}\nmonitoring: {podMonitor: {enabled: true}}", []string{"monitoring.podMonitor.enabled is true", "set podgate.metrics.expose"}},
	} {
		for _, binary := range helms {
			t.Run(name+" "+binary, func(t *testing.T) {
				t.Parallel()
				_, err := template(t, binary, test.values)
				if err == nil {
					t.Fatal("the values are accepted")
				}
				for _, want := range test.errors {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not contain %q: %v", want, err)
					}
				}
			})
		}
	}
}

// TestPodgateHasOneNamespace: the code has a fixed namespace for the leases of agents, which rules exclude. Without
// podgate the chart accepts any namespace.
func TestPodgateHasOneNamespace(t *testing.T) {
	for _, name := range []string{admission.ManagerNamespace, agents.Namespace, podrule.OwnNamespace} {
		if name != namespace {
			t.Errorf("the code has the namespace %s, the chart %s", name, namespace)
		}
	}
	for _, binary := range helms {
		for _, in := range []string{"elsewhere", "123", "kube-system"} {
			_, err := template(t, binary, withPodgate, "--namespace", in)
			if err == nil {
				t.Errorf("%s: podgate is accepted in the namespace %s", binary, in)
				continue
			}
			for _, want := range []string{`the namespace "` + in + `"`, "--namespace " + namespace, "podgate.enabled to false"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error does not contain %q: %v", binary, want, err)
				}
			}
			if _, err := template(t, binary, "", "--namespace", in); err != nil {
				t.Errorf("%s: without podgate in the namespace %s: %v", binary, in, err)
			}
		}
	}
}

// TestUnusualValuesAreAccepted: these values are valid, but similar to rejected ones.
func TestUnusualValuesAreAccepted(t *testing.T) {
	for _, values := range []string{
		"image: {registry: '[fd00::1]:5000/team/'}",
		"image: {registry: team}",
		"{image: {registry: ''}, manager: {image: {repository: registry.example.com/manager}}}",
		"manager: {apiServer: {host: 'fd00::1'}}",
		"commonLabels: {example.com/team: platform, kubernetes.io/cluster-service: 'true'}",
		"manager: {resources: {requests: {cpu: 1, memory: 64000000}, limits: {cpu: 0.5, memory: 1e8, hugepages-2Mi: 2Mi}}}",
		"reporters: [{name: a, checks: [{conditionType: A, http: {url: 'http://localhost/healthz', unixSocket: /run/agent.sock}}]}]",
		"reporters: [{name: a, checks: [{conditionType: A, http: {url: 'https://localhost.example.com'}}, {conditionType: B, tcp: {address: '[fd00::1]:1'}}]}]",
		"reporters: [{name: a, checks: [{conditionType: A, grpc: {address: 'unix:///run/localhost:1'}}]}]",
		"reporters: [{name: a, checks: [{conditionType: A, cni: {canary: {}}}, {conditionType: B, tcp: {address: 'localhost:1'}}]}]",
		"podgate: {enabled: true, hostPaths: [{path: /var/run}, {path: '/var/run/calico/end point'}]}",
		"podgate: {metrics: {port: 9447}}", // podgate is disabled, so it has no ports
		"{manager: {hostNetwork: false}, podgate: {enabled: true, metrics: {port: 9447}}}",
	} {
		for _, binary := range helms {
			if _, err := template(t, binary, values); err != nil {
				t.Errorf("with %q: %v", values, err)
			}
		}
	}
}

// TestOldClustersAreRefused: the chart renders nothing for an unsupported version.
func TestOldClustersAreRefused(t *testing.T) {
	if _, err := template(t, "helm", "", "--kube-version", "v1.32.9"); err == nil || !strings.Contains(err.Error(), "1.33") {
		t.Errorf("Kubernetes 1.32: %v", err)
	}
}

type schema struct {
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties any                `json:"additionalProperties"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir(), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read schema
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

// TestSchemaHasTheFieldsOfAReporterConfig: the chart accepts exactly the fields that the reporter accepts.
func TestSchemaHasTheFieldsOfAReporterConfig(t *testing.T) {
	wantFields(t, "checks", readSchema(t).Properties["reporters"].Items.Properties["checks"].Items, reflect.TypeFor[reporter.CheckConfig]())
}

func wantFields(t *testing.T, path string, have *schema, want reflect.Type) {
	t.Helper()
	fields := jsonFields(want)
	if got := slices.Sorted(maps.Keys(have.Properties)); !slices.Equal(got, slices.Sorted(maps.Keys(fields))) {
		t.Errorf("%s has the fields %v in the schema, %v in the code", path, got, slices.Sorted(maps.Keys(fields)))
	}
	for name, field := range fields {
		if of := have.Properties[name]; of != nil && of.Properties != nil {
			wantFields(t, path+"."+name, of, field)
		}
	}
}

// jsonFields returns the types of a type's fields by their JSON names, including inlined fields.
func jsonFields(of reflect.Type) map[string]reflect.Type {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	found := map[string]reflect.Type{}
	for field := range of.Fields() {
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if rest == "inline" {
			maps.Copy(found, jsonFields(field.Type))
		} else if name != "" {
			found[name] = field.Type
		}
	}
	return found
}

// TestSchemaIsThatOfTheValues: the schema and values.yaml have the same fields.
func TestSchemaIsThatOfTheValues(t *testing.T) {
	wantKnown(t, "", readSchema(t), defaults(t))
}

func defaults(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir(), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func wantKnown(t *testing.T, path string, have *schema, values map[string]any) {
	t.Helper()
	if have.AdditionalProperties != false {
		t.Errorf("%s: the schema accepts unknown fields", path)
	}
	for name, of := range have.Properties {
		value, there := values[name]
		if !there && path+name != "global" {
			t.Errorf("%s%s is in the schema, but not in values.yaml", path, name)
		}
		if fields, group := value.(map[string]any); group && of.Properties != nil && name != "resources" {
			wantKnown(t, path+name+".", of, fields)
		}
	}
	for name := range values {
		if have.Properties[name] == nil {
			t.Errorf("%s%s is in values.yaml, but not in the schema", path, name)
		}
	}
}

// TestValuesDescribeEveryFieldOfAReporter: the list is empty by default, so only its comment
// describes the fields of an entry.
func TestValuesDescribeEveryFieldOfAReporter(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir(), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, line := range regexp.MustCompile(`(?m)^# (?:- |  )([a-zA-Z]+):`).FindAllStringSubmatch(string(data), -1) {
		described = append(described, line[1])
	}
	slices.Sort(described)
	if want := slices.Sorted(maps.Keys(readSchema(t).Properties["reporters"].Items.Properties)); !slices.Equal(described, want) {
		t.Errorf("values.yaml describes %v, the schema has %v", described, want)
	}
}
