package scenario_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/scenario"
)

// world has three nodes: one held, one released, one not reconciled yet; and pods, of which one
// waits for its network.
func world() *scenario.World {
	return &scenario.World{
		Nodes: []scenario.NodeState{{Name: "w-1", Held: true}, {Name: "w-2", Released: true}, {Name: "w-3"}},
		Pods: []scenario.PodState{
			{Node: "w-1", Running: true, Gated: true, Ready: true, Reasons: []string{"AllComponentsReady"}},
			{Node: "w-1", Running: true, Gated: true, Waiting: true, Reasons: []string{"ComponentsNotReady"}},
			{Node: "w-2", Running: true, Gated: true, Waiting: true},
			{Node: "w-2", Running: true, Ready: true}, {}, {},
		},
		Rules: map[string]scenario.RuleState{"net": {Standing: "Conflict", Message: "rule first is older"}},
		Why: func(node, deploy string) (string, error) {
			if deploy != "" {
				return deploy + " on " + node + " waits for policy", nil
			}
			return node + " is held by rule net", nil
		},
		Mutated: func(kind string, labels map[string]string) (bool, error) {
			return labels[map[string]string{"Node": "pool", "Pod": "app", "DaemonSet": "app"}[kind]] ==
				map[string]string{"Node": "workers", "Pod": "shop", "DaemonSet": "agent"}[kind], nil
		},
		Last: func(node string) ([]string, error) {
			return map[string][]string{"w-1": {"policy"}, "w-2": {"flannel", "policy"}}[node], nil
		},
	}
}

func TestExpectations(t *testing.T) {
	for expect, unmet := range map[string]string{
		"{held: 1}":                                                   "",
		"{held: 2}":                                                   "1 of 3 nodes are held, expected 2",
		"{held: all}":                                                 "1 of 3 nodes are held, expected all",
		"{nodes: [w-1], held: all}":                                   "",
		"{nodes: [w-3], released: all}":                               "0 of 1 nodes are released",
		"{nodes: [w-3], released: 0, held: 0}":                        "",
		"{released: 1, running: 4, waiting: 2}":                       "",
		"{running: 5}":                                                "4 pods running, expected 5",
		"{waiting: 0, running: 4}":                                    "2 pods waiting, expected 0",
		"{rule: net, standing: Conflict, says: first}":                "",
		"{rule: net, standing: Enforced}":                             "rule net is Conflict (rule first is older), expected Enforced",
		"{rule: net, says: second}":                                   `expected "second" in it`,
		"{rule: other, standing: Enforced}":                           "rule other does not exist",
		"{rule: other, standing: Gone}":                               "",
		"{rule: net, standing: Gone}":                                 "rule net is Conflict",
		"{why: {node: w-1, contains: held by rule net}}":              "",
		"{why: {node: w-1, contains: something else}}":                `the explanation of w-1 is "w-1 is held by rule net"`,
		"{taintedAtCreation: {pool: workers}}":                        "",
		"{taintedAtCreation: {pool: others}}":                         "created without the taint",
		"{tolerated: {app: agent}}":                                   "",
		"{tolerated: {app: other}}":                                   "a DaemonSet would get no toleration",
		"{held: 1, running: 9, taintedAtCreation: {pool: elsewhere}}": "4 pods running, expected 9",

		"{pods: {gated: 3, waiting: 2, ready: 2}}":                           "",
		"{pods: {gated: 4}}":                                                 "3 pods with a gate, expected 4",
		"{pods: {waiting: 0, ready: 3}}":                                     "2 pods with a closed gate, expected 0\n2 pods ready, expected 3",
		"{nodes: [w-1], pods: {gated: 2, waiting: 1, ready: 1}}":             "",
		"{nodes: [w-2], pods: {gated: 2}}":                                   "1 pod with a gate, expected 2",
		"{pods: {reasons: {AllComponentsReady: 1, RuleDeleted: 0}}}":         "",
		"{nodes: [w-2], pods: {reasons: {ComponentsNotReady: 1}}}":           "0 gates with reason ComponentsNotReady, expected 1",
		"{why: {pod: shop, node: w-2, contains: waits for policy}}":          "",
		"{why: {pod: shop, node: w-2, contains: held}}":                      `the explanation of a pod of shop on w-2 is "shop on w-2 waits for policy"`,
		"{gatedAtCreation: {app: shop}}":                                     "",
		"{gatedAtCreation: {app: other}}":                                    "a pod would be created without a gate",
		"{last: {node: w-1, component: policy}}":                             "",
		"{last: {node: w-1, component: flannel}}":                            `were ["policy"], expected flannel alone`,
		"{last: {node: w-2, component: policy}}":                             `were ["flannel" "policy"], expected policy alone`,
		"{last: {node: w-3, component: policy}}":                             "were [], expected policy alone",
		"{held: 2, pods: {ready: 3}, gatedAtCreation: {app: anything else}}": "2 pods ready, expected 3",
	} {
		s := parse(t, withSteps("- deploy: {name: shop, pods: 6}\n- expect: "+expect))
		err := s.Steps[2].Expect.Unmet(world())
		switch {
		case unmet == "" && err != nil:
			t.Errorf("%s: %v", expect, err)
		case unmet != "" && (err == nil || !strings.Contains(err.Error(), unmet)):
			t.Errorf("%s: %v, want %q", expect, err, unmet)
		}
	}
}

func TestAllOfNoNodesIsUnmet(t *testing.T) {
	s := parse(t, "title: t\nabout: a\nsteps: [{expect: {held: all}}]")
	if s.Steps[0].Expect.Unmet(&scenario.World{}) == nil {
		t.Error("all of no nodes are held")
	}
}

func TestAFailedQueryIsUnmet(t *testing.T) {
	w := world()
	w.Why = func(string, string) (string, error) { return "held by rule net, waits for policy", errors.New("away") }
	w.Mutated = func(string, map[string]string) (bool, error) { return true, errors.New("away") }
	w.Last = func(string) ([]string, error) { return []string{"policy"}, errors.New("away") }
	for _, expect := range []string{
		"{why: {node: w-1, contains: held}}", "{taintedAtCreation: {a: b}}", "{tolerated: {a: b}}",
		"{why: {pod: shop, node: w-1, contains: policy}}", "{gatedAtCreation: {a: b}}", "{last: {node: w-1, component: policy}}",
	} {
		s := parse(t, withSteps("- deploy: {name: shop, pods: 1}\n- expect: "+expect))
		if err := s.Steps[2].Expect.Unmet(w); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("%s: %v", expect, err)
		}
	}
}

func TestTimeoutIsAMinuteByDefault(t *testing.T) {
	s := parse(t, withSteps("- expect: {held: 1}\n- expect: {held: 1, within: 5s, for: 2s}"))
	if got := s.Steps[1].Expect; got.Timeout() != time.Minute || got.StableFor() != 0 {
		t.Errorf("timeout %v, stable for %v", got.Timeout(), got.StableFor())
	}
	if got := s.Steps[2].Expect; got.Timeout() != 5*time.Second || got.StableFor() != 2*time.Second {
		t.Errorf("timeout %v, stable for %v", got.Timeout(), got.StableFor())
	}
}
