package plugin_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/readygate/readygate/internal/plugin"
)

const rule = `apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata: {name: network}
spec:
  conditions: [{type: example.com/NetworkReady, requiredStatus: "True"}]
  taint: {key: readiness.k8s.io/NetworkReady, value: pending, effect: NoSchedule}
  enforcementMode: continuous
  nodeSelector: {matchLabels: {example.com/pool: workers}}
`

const podRule = `apiVersion: readygate.dev/v1alpha1
kind: PodReadinessRule
metadata: {name: network}
spec:
  components: [{name: policy, podCondition: {type: policy.example.com/programmed}}]
`

const nodes = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: w-1, uid: a, labels: {example.com/pool: workers}}}
- {apiVersion: v1, kind: Node, metadata: {name: w-2, uid: b, labels: {example.com/pool: workers}}, status: {conditions: [{type: example.com/NetworkReady, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: other, uid: c}}
`

// aged is a dump of nodes that is years old. The heartbeat of one node is stale at the time of the dump.
const aged = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: w-1, uid: a, labels: {example.com/pool: workers}}, status: {conditions: [{type: example.com/NetworkReady, status: "True", lastHeartbeatTime: "2020-02-02T12:00:00Z"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: w-2, uid: b, labels: {example.com/pool: workers}}, status: {conditions: [{type: example.com/NetworkReady, status: "True", lastHeartbeatTime: "2020-02-02T11:50:00Z"}]}}
`

// home is a directory without a kubeconfig, with the files of these tests.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, content := range map[string]string{
		"rule.yaml":      rule,
		"bad.yaml":       strings.Replace(rule, "NoSchedule", "NoScheduling", 1),
		"warns.yaml":     strings.Replace(rule, "NoSchedule", "PreferNoSchedule", 1),
		"evicts.yaml":    strings.Replace(rule, "NoSchedule", "NoExecute", 1),
		"other.yaml":     strings.Replace(rule, "/NetworkReady", "/Other", 2),
		"configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"fresh/preview":  rule + "  dryRun: true\n",
		"nodes.yaml":     nodes,
		"fresh/nodes":    aged,
		"fresh/a.yaml":   strings.Replace(rule, `requiredStatus: "True"`, `requiredStatus: "True", maxAge: 2m`, 1),
		"below/bad.yaml": "a: [",
		"empty/none.txt": "nothing",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = plugin.Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}, args)
	return code, out.String(), errOut.String()
}

func TestExitCodesAndErrorsWithoutACluster(t *testing.T) {
	home(t)
	for name, c := range map[string]struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string
	}{
		"no verb":                   {nil, "", 0, "kubectl readiness [command]", ""},
		"help has the exit codes":   {[]string{"--help"}, "", 0, "3  lint found errors", ""},
		"an unknown verb":           {[]string{"stauts"}, "", 2, "", `error: unknown command "stauts"`},
		"an unknown flag":           {[]string{"status", "--x"}, "", 2, "", "See 'kubectl readiness status --help'."},
		"an unknown format":         {[]string{"status", "-o", "xml"}, "", 2, "", "must be one of wide, json, yaml"},
		"an unknown argument":       {[]string{"status", "x"}, "", 2, "", "error: unknown command"},
		"why without a node":        {[]string{"why"}, "", 2, "", "kubectl readiness why worker-1"},
		"why of two names":          {[]string{"why", "a", "b"}, "", 2, "", "got 2 arguments, must be one node or one pod"},
		"why of another kind":       {[]string{"why", "deployment/web"}, "", 2, "", `"deployment/web" is neither a node nor a pod`},
		"why of no name":            {[]string{"why", "pod/"}, "", 2, "", `"pod/" has no name`},
		"why of a pod with a slash": {[]string{"why", "pod/shop/web"}, "", 2, "", `"shop/web" is not a valid name, a name has no '/': set the namespace with -n`},
		"no cluster with the pod":   {[]string{"why", "pod/web", "-n", "shop"}, "", 1, "", "error: no cluster is configured"},
		"no cluster with its name":  {[]string{"why", "pods", "web", "-n", "shop"}, "", 1, "", "error: no cluster is configured"},
		"no cluster with pods":      {[]string{"pods", "-A"}, "", 1, "", "error: no cluster is configured"},
		"pods with an argument":     {[]string{"pods", "web"}, "", 2, "", "error: unknown command"},
		"no cluster":                {[]string{"status"}, "", 1, "", "error: no cluster is configured: set KUBECONFIG"},
		"no cluster to watch":       {[]string{"watch"}, "", 1, "", "error: no cluster is configured"},
		"no cluster to serve":       {[]string{"ui"}, "", 1, "", "error: no cluster is configured"},
		"a context that is not":     {[]string{"status", "--server", "https://127.0.0.1:1", "--context", "x"}, "", 1, "", `context "x" does not exist`},
		"a selector that is none":   {[]string{"nodes", "-l", "a in"}, "", 2, "", "--selector"},
		"version":                   {[]string{"version", "--client"}, "", 0, "Client: dev", ""},
		"version without a cluster": {[]string{"version"}, "", 0, "Manager: could not be read: no cluster is configured", ""},
		"flags of kubectl":          {[]string{"options"}, "", 0, "--kubeconfig", ""},
		"completion":                {[]string{"completion", "bash"}, "", 0, "kubectl-readiness", ""},
		"completion by kubectl":     {[]string{"completion", "kubectl"}, "", 0, `exec kubectl readiness __complete "$@"`, ""},

		"lint without a file":        {[]string{"lint"}, "", 2, "", "use -f with a file"},
		"lint of no file":            {[]string{"lint", "-f", "none.yaml"}, "", 1, "", "file none.yaml does not exist"},
		"lint of an empty directory": {[]string{"lint", "-f", "empty"}, "", 1, "", "has no files that end in .yaml"},
		"lint, fine":                 {[]string{"lint", "-f", "rule.yaml"}, "", 0, "1 rule in 1 object: 0 errors, 0 warnings", ""},
		"lint, error":                {[]string{"lint", "-f", "bad.yaml"}, "", 3, "error: bad.yaml NodeReadinessRule/network spec.taint.effect", ""},
		"lint, warning":              {[]string{"lint", "-f", "warns.yaml"}, "", 0, "1 warning", ""},
		"lint, evictions":            {[]string{"lint", "-f", "evicts.yaml"}, "", 3, "set maxUnavailable, e.g. 1 or 10%", ""},
		"lint, warning, strict":      {[]string{"lint", "-f", "warns.yaml", "--strict"}, "", 3, "1 warning", ""},
		"lint of a stream":           {[]string{"lint", "-f", "-"}, "a: [", 3, "error: standard input: is not valid YAML", ""},
		"lint of two files":          {[]string{"lint", "-f", "rule.yaml", "-f", "other.yaml"}, "", 3, "another rule has this name, in rule.yaml", ""},
		"lint of a directory":        {[]string{"lint", "-f", "."}, "", 3, "error: bad.yaml", ""},
		"lint of a rule of pods":     {[]string{"lint", "-f", "-"}, podRule, 0, "1 rule in 1 object: 0 errors, 0 warnings", ""},
		"lint of no rule":            {[]string{"lint", "-f", "configmap.yaml"}, "", 0, "No NodeReadinessRule or PodReadinessRule found", ""},
		"lint of an empty stream":    {[]string{"lint", "-f", "-"}, "", 0, "warning: standard input: has no objects", ""},
		"lint of nothing, strict":    {[]string{"lint", "-f", "-", "--strict"}, "", 3, "1 warning", ""},
		"lint without an end":        {[]string{"lint", "-f", "/dev/zero"}, "", 1, "", "error: /dev/zero is larger than 16 MiB"},
		"lint of a long stream":      {[]string{"lint", "-f", "-"}, strings.Repeat("#", 16<<20+1), 1, "", "error: standard input is larger than 16 MiB"},
		"lint of a generated name":   {[]string{"lint", "-f", "-"}, strings.Replace(rule, "name: network", "generateName: net-", 1), 0, "NodeReadinessRule/net-…", ""},

		"policy without a cluster":        {[]string{"policy"}, "", 1, "", "error: no cluster is configured"},
		"policy of a rule without a UID":  {[]string{"policy", "-f", "rule.yaml"}, "", 1, "", "kubectl get nrr,prr -o yaml | kubectl readiness policy -f -"},
		"policy of an unknown version":    {[]string{"policy", "-f", "-", "--policy-version=v2"}, rule, 2, "", `--policy-version is "v2", must be one of v1, v1beta1`},
		"policy of pods without an image": {[]string{"policy", "-f", "-"}, strings.Replace(podRule, "name: network}", "name: network, uid: a}", 1), 2, "", "--latch-image is not set"},
		"policy of no rule":               {[]string{"policy", "-f", "configmap.yaml"}, "", 1, "", "these files have no NodeReadinessRule"},
		"policy has help":                 {[]string{"policy", "--help"}, "", 0, "Pipe the output into kubectl apply -f -", ""},

		"simulate":                         {[]string{"simulate", "-f", "rule.yaml", "--nodes", "nodes.yaml"}, "", 0, "w-1    is held   network   example.com/NetworkReady is not reported, must be True", ""},
		"simulate refuses errors":          {[]string{"simulate", "-f", "bad.yaml", "--nodes", "nodes.yaml"}, "", 3, "", "error: bad.yaml"},
		"simulate, evictions":              {[]string{"simulate", "-f", "evicts.yaml", "--nodes", "nodes.yaml"}, "", 0, "EVICTIONS: pods that do not tolerate readiness.k8s.io/NetworkReady:NoExecute would be evicted from 1 node.", ""},
		"simulate as of then":              {[]string{"simulate", "-f", "fresh/a.yaml", "--nodes", "fresh/nodes"}, "", 0, "1 node would change:", ""},
		"simulate with a dump":             {[]string{"simulate", "-f", "fresh/a.yaml", "--nodes", "fresh/nodes"}, "", 0, "If this were applied at 2020-02-02T12:00:00Z (2 nodes evaluated", ""},
		"simulate with rules":              {[]string{"simulate", "-f", "rule.yaml", "--nodes", "nodes.yaml", "--rules", "rule.yaml"}, "", 0, "No node taints would change.", ""},
		"simulate a change that is none":   {[]string{"simulate", "-f", "other.yaml", "--nodes", "nodes.yaml", "--rules", "rule.yaml"}, "", 0, "Rule network cannot be changed in place", "the API server would reject this change of NodeReadinessRule/network"},
		"simulate a change of maxAge":      {[]string{"simulate", "-f", "fresh/a.yaml", "--nodes", "nodes.yaml", "--rules", "rule.yaml"}, "", 0, "1 node would change:", ""},
		"simulate a change of dryRun":      {[]string{"simulate", "-f", "rule.yaml", "--nodes", "nodes.yaml", "--rules", "fresh/preview"}, "", 0, "1 node would change:", ""},
		"simulate rules without nodes":     {[]string{"simulate", "-f", "rule.yaml", "--rules", "rule.yaml"}, "", 2, "", "--rules requires --nodes"},
		"simulate no rule":                 {[]string{"simulate", "-f", "nodes.yaml", "--nodes", "nodes.yaml"}, "", 1, "", "these files have no NodeReadinessRule"},
		"simulate a rule of pods":          {[]string{"simulate", "-f", "-", "--nodes", "nodes.yaml"}, podRule, 1, "", "simulate supports NodeReadinessRules; use kubectl readiness lint for both"},
		"simulate on something else":       {[]string{"simulate", "-f", "rule.yaml", "--nodes", "rule.yaml"}, "", 1, "", "rule.yaml has no Node: create the file with kubectl get"},
		"simulate without a file of nodes": {[]string{"simulate", "-f", "rule.yaml", "--nodes", "none"}, "", 1, "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, c.stdin, c.args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" {
				t.Errorf("code %d, want %d\nstdout (want %q):\n%s\nstderr (want %q):\n%s", code, c.code, c.stdout, stdout, c.stderr, stderr)
			}
			if c.code == 2 && !strings.Contains(stderr, "--help'") {
				t.Errorf("does not name help: %s", stderr)
			}
		})
	}
}

func TestSubdirectoriesAreReadOnlyWithTheRecursiveFlag(t *testing.T) {
	home(t)
	for _, name := range []string{"bad.yaml", "other.yaml", "warns.yaml", "evicts.yaml"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := run(t, "", "lint", "-f", "."); code != 0 {
		t.Errorf("code %d: %s", code, out)
	}
	if code, out, _ := run(t, "", "lint", "-R", "-f", "."); code != 3 || !strings.Contains(out, "below/bad.yaml: is not valid YAML") {
		t.Errorf("code %d: %s", code, out)
	}
}

func TestOutputForPrograms(t *testing.T) {
	home(t)
	_, out, _ := run(t, "", "lint", "-f", "bad.yaml", "-o", "json")
	var report struct {
		Findings []struct{ Severity, File, Object, Field, Message string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Findings) != 1 || report.Findings[0].Field != "spec.taint.effect" {
		t.Errorf("%v: %s", err, out)
	}
	if _, out, _ := run(t, "", "simulate", "-f", "rule.yaml", "--nodes", "nodes.yaml", "-o", "yaml"); !strings.Contains(out, "effects:\n- change: Added\n") {
		t.Errorf("got %s", out)
	}
}

// Names in files are untrusted text, in every format.
func TestOutputHasNoControlCharacters(t *testing.T) {
	home(t)
	hostile := strings.Replace(rule, "name: network", `name: "x\x1b[2J\u009b31m\x7f"`, 1)
	for _, format := range []string{"", "json", "yaml"} {
		_, out, _ := run(t, hostile, "lint", "-f", "-", "-o", format)
		if strings.ContainsAny(out, "\x1b\x7f\u009b") || !strings.Contains(out, "[2J") {
			t.Errorf("-o %q: %q", format, out)
		}
	}
	if _, _, stderr := run(t, "", "lint", "-f", "\x1b[2J"); strings.Contains(stderr, "\x1b") {
		t.Errorf("stderr: %q", stderr)
	}
}
