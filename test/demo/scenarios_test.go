package demo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/scenario"
	"github.com/readygate/readygate/internal/testenv"
)

// The example of docs/get-started/demo.md is a scenario that succeeds.
func TestTheExampleOfTheDocsPlays(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "get-started", "demo.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	file := filepath.Join(t.TempDir(), "example.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil || !found {
		t.Fatalf("no example: %v", err)
	}
	start(t, file).ends(0, "All ")
}

// Every scenario of the repository succeeds, and its summary lists every expectation.
func TestEveryScenarioPlays(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "scenarios", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			p.ends(0, "Results: "+s.Title, "The dashboard: http://127.0.0.1:", "All ")
			for _, invariant := range s.Always {
				if !strings.Contains(p.text(), "✓ "+invariant.Text()) {
					t.Errorf("the summary lacks %q", invariant.Text())
				}
			}
			for i := range s.Steps {
				if e := s.Steps[i].Expect; e != nil && strings.Count(p.text(), "✓ "+e.Text()) < 2 {
					t.Errorf("not printed as passed during the scenario and in the summary: %s", e.Text())
				}
			}
		})
	}
}

// short is a scenario of one node, with these steps after it is held.
func short(t *testing.T, steps string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "short.yaml")
	text := `title: A short one
about: One node.
components: {network: {condition: example.com/NetworkReady}}
always: [foreignTaintsStay]
steps:
- apply:
    manifest: |
      apiVersion: readiness.node.x-k8s.io/v1alpha1
      kind: NodeReadinessRule
      metadata:
        name: network-rule
      spec:
        conditions: [{type: example.com/NetworkReady, requiredStatus: "True"}]
        taint: {key: readiness.k8s.io/NetworkReady, effect: NoSchedule, value: pending}
        enforcementMode: continuous
        nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
- expect: {taintedAtCreation: {node-role.kubernetes.io/worker: ""}}
- deploy: {name: shop, pods: 2}
- join: {name: worker, count: 1, labels: {node-role.kubernetes.io/worker: ""}, taints: ["example.com/team=blue:PreferNoSchedule"]}
- expect: {held: all, waiting: 2}
` + steps
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAWrongExpectationFailsAndIsNamed(t *testing.T) {
	t.Parallel()
	p := start(t, short(t, "- expect: {released: all, within: 2s}\n- say: Never said.\n"))
	p.ends(1, "✗ all nodes released: not within 2s: 0 of 1 nodes are released, expected all", "The scenario failed.", "✓ all nodes held")
	if strings.Contains(p.text(), "Never said.") {
		t.Error("the scenario went on")
	}
}

func TestExpectationThatDoesNotLastFails(t *testing.T) {
	t.Parallel()
	p := start(t, short(t, "- component: {name: network, nodes: [worker-1], is: up}\n- expect: {held: all, for: 30s}\n"))
	p.ends(1, "✗ all nodes held, stable for 30s: not stable: 0 of 1 nodes are held")
}

func TestUnknownScenarioErrorListsTheAvailableOnes(t *testing.T) {
	t.Parallel()
	start(t, "nothing-like-this").ends(2, `scenario "nothing-like-this" does not exist`, "cni-guide", "flapping-agent", "pod-network", "two-hundred-nodes")
}

func TestAWrongScenarioIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	file := short(t, "- expekt: {held: 1}\n")
	p := start(t, file)
	p.ends(1, "short.yaml: steps[5] has no field \"expekt\"")
	if strings.Contains(p.text(), "starting") {
		t.Error("something was started")
	}
}

func TestCtrlCEndsEverything(t *testing.T) {
	for moment, text := range map[string]string{
		"while the control plane starts": "starting etcd",
		"in the middle of the scenario":  "worker-1 is held",
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			p := start(t, short(t, "- pause: 10m\n"))
			p.says(text)
			p.interrupt()
			p.ends(130)
		})
	}
}
