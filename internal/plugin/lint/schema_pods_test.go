package lint_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/plugin/lint"
	"github.com/readygate/readygate/internal/testenv/manifest"
)

// component returns a spec with one component that has these fields and a name.
func component(fields string) string { return "components: [{name: a, " + fields + "}]" }

// with returns a valid spec with these fields added.
func with(fields string) string {
	return "components: [{name: a, podCondition: {type: example.com/a}}]\n" + fields
}

// podRuleOf returns the manifest of a PodReadinessRule with this spec.
func podRuleOf(spec string) string {
	return "apiVersion: readygate.dev/v1alpha1\nkind: PodReadinessRule\nmetadata: {name: network}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
}

// Each message names the problem and a valid value.
func TestSchemaRejectsPodRules(t *testing.T) {
	const (
		list, first = "spec.components", "spec.components[0]"
		kinds       = "a component must have exactly one of podCondition, nodeCondition, file, http and reach, e.g. podCondition {type: policy.example.com/programmed}"
		condition   = "type must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'policy.example.com/programmed'"
		path        = "path must be absolute and without '..', e.g. '/run/example/{uid}'"
		inPath      = "path may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else, e.g. '/run/example/{uid}'"
		url         = "url must have the host 127.0.0.1, localhost or [::1] and a port from 1 to 65535, e.g. 'http://127.0.0.1:9099/pods/{namespace}/{name}'"
		empty       = "the selector must not be empty: name at least one label, or remove the selector"
		gate        = "gate must be a qualified name: a lower-case DNS prefix, '/' and a name of 1-63 characters, e.g. 'networking.kubernetes.io/pod-network-ready'"
		owned       = "gate must not be a condition that Kubernetes (e.g. Ready) or a load balancer controller (target-health.elbv2.k8s.aws/..., cloud.google.com/load-balancer-neg-ready) sets: use 'networking.kubernetes.io/pod-network-ready', or a name with a prefix of your own, e.g. 'example.com/network-ready'"
		never       = "podCondition.type must not be Ready or the gate of the rule, which are True only after this component is ready: name a condition that the component sets, e.g. 'policy.example.com/programmed'"
		name        = "name must be 1-63 lower-case letters, digits and '-', alphanumeric at both ends, e.g. 'calico'"
	)
	for what, tc := range map[string]struct{ spec, field, says string }{
		"no components":           {"gate: example.com/a", list, "Required value"},
		"an empty list of them":   {"components: []", list, "at least 1 item"},
		"17 of them":              {"components: " + "[" + manifest.List(17, "{name: a%d, reach: {}}") + "]", list, "must have at most 16 items"},
		"a name twice":            {"components: [{name: a, reach: {}}, {name: a, reach: {}}]", "spec.components[1]", `Duplicate value: {"name":"a"}`},
		"no name":                 {"components: [{reach: {}}]", first + ".name", "Required value"},
		"an empty name":           {"components: [{name: '', reach: {}}]", first + ".name", name},
		"a name with a capital":   {"components: [{name: Calico, reach: {}}]", first + ".name", name},
		"a name with a dash":      {"components: [{name: calico-, reach: {}}]", first + ".name", name},
		"no way to answer":        {"components: [{name: a}]", first, kinds},
		"two ways to answer":      {component("reach: {}, podCondition: {type: a}"), first, kinds},
		"a condition of no type":  {component("podCondition: {status: 'True'}"), first + ".podCondition.type", "Required value"},
		"a type with a blank":     {component("podCondition: {type: 'a b'}"), first + ".podCondition.type", condition},
		"a type with no name":     {component("nodeCondition: {type: example.com/}"), first + ".nodeCondition.type", condition},
		"a status of Unknown":     {component("podCondition: {type: a, status: Unknown}"), first + ".podCondition.status", `supported values: "True", "False"`},
		"a condition Ready":       {component("podCondition: {type: Ready}"), list, never},
		"Ready, and True":         {component("podCondition: {type: Ready, status: 'True'}"), list, never},
		"the well-known gate":     {component("podCondition: {type: networking.kubernetes.io/pod-network-ready}"), list, never},
		"the gate of the rule":    {with("gate: example.com/a"), list, never},
		"Initialized and a latch": {"startHold: true\n" + component("podCondition: {type: Initialized}"), list, "podCondition.type must not be ContainersReady or Initialized with startHold"},
		"it in the second one":    {"gate: example.com/b\ncomponents: [{name: a, reach: {}}, {name: b, podCondition: {type: example.com/b}}]", list, never},

		"a relative path":           {component("file: {path: 'run/{uid}'}"), first + ".file.path", path},
		"a path that goes up":       {component("file: {path: '/run/../etc/{uid}'}"), first + ".file.path", path},
		"a path with another word":  {component("file: {path: '/run/{pod}'}"), first + ".file.path", inPath},
		"a path with half a brace":  {component("file: {path: '/run/{uid'}"), first + ".file.path", inPath},
		"a file for all pods":       {component("file: {path: /run/ready}"), first + ".file", "path or contains must name the pod, otherwise one file would count for all pods: use {name}, {namespace}, {uid} or {ip}, e.g. '/run/example/{uid}'"},
		"nothing to contain":        {component("file: {path: '/run/{uid}', contains: ''}"), first + ".file.contains", "at least 1 chars long"},
		"another word to contain":   {component("file: {path: '/run/{uid}', contains: '{address}'}"), first + ".file.contains", "contains may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and no other word, e.g. '{ip}/32'"},
		"another host":              {component("http: {url: 'http://example.com:80/{uid}'}"), first + ".http.url", url},
		"a host that looks alike":   {component("http: {url: 'http://127.0.0.1.example.com:80/'}"), first + ".http.url", url},
		"a host after an @":         {component("http: {url: 'http://127.0.0.1:80@example.com/'}"), first + ".http.url", url},
		"no port":                   {component("http: {url: 'http://127.0.0.1/{uid}'}"), first + ".http.url", url},
		"a port 65536 in a URL":     {component("http: {url: 'http://127.0.0.1:65536/{uid}'}"), first + ".http.url", url},
		"a port 0 in a URL":         {component("http: {url: 'http://127.0.0.1:0/{uid}'}"), first + ".http.url", url},
		"another scheme":            {component("http: {url: 'ftp://127.0.0.1:21/{uid}'}"), first + ".http.url", url},
		"another word in a URL":     {component("http: {url: 'http://127.0.0.1:80/{pod}'}"), first + ".http.url", "url may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else"},
		"a port of 0":               {component("reach: {port: 0}"), first + ".reach.port", "greater than or equal to 1"},
		"a port of 65536":           {component("reach: {port: 65536}"), first + ".reach.port", "less than or equal to 65535"},
		"reached from another node": {component("reach: {from: Peer}"), first + ".reach.from", `Unsupported value: "Peer": supported values: "Node"`},
		"a gate without a prefix":   {with("gate: network-ready"), "spec.gate", gate},
		"a gate of the kubelet":     {with("gate: Ready"), "spec.gate", gate},
		"a gate of Kubernetes":      {with("gate: PodScheduled"), "spec.gate", owned},
		"a new gate of Kubernetes":  {with("gate: AllContainersRestarting"), "spec.gate", owned},
		"a gate of a load balancer": {with("gate: target-health.elbv2.k8s.aws/k8s-shop-web-0123456789"), "spec.gate", owned},
		"a gate of GKE":             {with("gate: cloud.google.com/load-balancer-neg-ready"), "spec.gate", owned},
		"a gate in capitals":        {with("gate: Example.com/a"), "spec.gate", gate},
		"a gate with a blank":       {with("gate: 'example.com/a b'"), "spec.gate", gate},
		"no deadline":               {with("onDeadline: Open"), "spec.onDeadline", "onDeadline has no effect without deadlineSeconds: set deadlineSeconds, or remove onDeadline"},
		"a deadline of 0":           {with("deadlineSeconds: 0"), "spec.deadlineSeconds", "greater than or equal to 1"},
		"a deadline of two days":    {with("deadlineSeconds: 172800"), "spec.deadlineSeconds", "less than or equal to 86400"},
		"a deadline as a text":      {with("deadlineSeconds: 10s"), "spec.deadlineSeconds", "must be of type integer"},
		"another end of a deadline": {with("deadlineSeconds: 10\nonDeadline: Delete"), "spec.onDeadline", `supported values: "Report", "Open"`},
		"another close policy":      {with("closePolicy: Sometimes"), "spec.closePolicy", `supported values: "Never", "OnNotReady"`},
		"a start held as a text":    {with("startHold: 'yes'"), "spec.startHold", "must be of type boolean"},

		"an empty selector":         {with("podSelector: {}"), "spec.podSelector", empty},
		"an empty list of labels":   {with("namespaceSelector: {matchLabels: {}}"), "spec.namespaceSelector", empty},
		"a bad value of a label":    {with("podSelector: {matchLabels: {app: 'a b'}}"), "spec.podSelector.matchLabels[app]", "label value must be empty or consist of alphanumeric characters"},
		"In without values":         {with("podSelector: {matchExpressions: [{key: app, operator: In}]}"), "spec.podSelector.matchExpressions[0].values", "values must not be empty when operator is In or NotIn: add values, or use Exists or DoesNotExist"},
		"Exists with values":        {with("podSelector: {matchExpressions: [{key: app, operator: Exists, values: [a]}]}"), "spec.podSelector.matchExpressions[0].values", "values must be empty when operator is Exists or DoesNotExist: remove them, or use In or NotIn"},
		"another operator":          {with("podSelector: {matchExpressions: [{key: app, operator: Gt, values: ['1']}]}"), "spec.podSelector.matchExpressions[0].operator", `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"a bad key of an operation": {with("podSelector: {matchExpressions: [{key: 'a b', operator: Exists}]}"), "spec.podSelector.matchExpressions[0].key", "label key must be a name of 1-63 characters"},
	} {
		if err := findingOf(check(t, podRuleOf(tc.spec)).Findings, tc.field, tc.says); err != "" {
			t.Errorf("%s: %s", what, err)
		}
	}
}

func TestSchemaAcceptsPodRules(t *testing.T) {
	for what, spec := range map[string]string{
		"nothing but a component": with(""),
		"16 components":           "components: " + "[" + manifest.List(16, "{name: a%d, reach: {}}") + "]",
		"all kinds of them": "components: [{name: a, podCondition: {type: Ready, status: 'False'}}, {name: b, nodeCondition: {type: example.com/B_b.b}}, " +
			"{name: c, file: {path: '/run/{namespace}%2F{name} eth0', contains: '{\"ip\": \"{ipv4}/32\"}'}}, {name: d, http: {url: 'https://[::1]:9099'}}, {name: e, reach: {port: 65535, from: Node}}]",
		"a condition of the node, Ready":   component("nodeCondition: {type: Ready}"),
		"conditions that look alike":       "components: [{name: a, podCondition: {type: ready}}, {name: b, podCondition: {type: example.com/Ready}}, {name: c, podCondition: {type: ContainersReady}}]",
		"the gate as long as it is closed": component("podCondition: {type: networking.kubernetes.io/pod-network-ready, status: 'False'}"),
		"a file that names the pod within": component("file: {path: /run/all, contains: '{uid}'}"),
		"localhost by name":                component("http: {url: 'http://localhost:1/{ipv6}'}"),
		"a deadline that is only reported": with("deadlineSeconds: 86400"),
		"a label without a value":          with("podSelector: {matchLabels: {app: ''}}"),
		"a label with null":                with("podSelector: {matchLabels: {app: }}"),
		"all operators":                    with("namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: a, operator: NotIn, values: ['']}, {key: b, operator: Exists}, {key: c, operator: DoesNotExist}]}"),
	} {
		if report := check(t, podRuleOf(spec)); report.Count(lint.Error) > 0 || len(report.PodRules) != 1 {
			t.Errorf("%s: %s", what, strings.Join(lines(report, lint.Error), "\n"))
		}
	}
}
