package scenario_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/scenario"
)

// world has three nodes: one held, one released, one about to be something.
func world() scenario.World {
	return scenario.World{
		Nodes:   []scenario.NodeState{{Name: "w-1", Held: true}, {Name: "w-2", Released: true}, {Name: "w-3"}},
		Running: 4, Waiting: 2,
		Rules:    map[string]scenario.RuleState{"net": {Standing: "Conflict", Message: "rule first is older"}},
		Why:      func(node string) (string, error) { return node + " is held by rule net", nil },
		BornHeld: func(labels map[string]string) (bool, error) { return labels["pool"] == "workers", nil },

		Tolerated: func(labels map[string]string) (bool, error) { return labels["app"] == "agent", nil },
	}
}

func TestExpectations(t *testing.T) {
	for expect, complaint := range map[string]string{
		"{held: 1}":                                          "",
		"{held: 2}":                                          "1 of 3 nodes are held, expected 2",
		"{held: all}":                                        "1 of 3 nodes are held, expected all",
		"{nodes: [w-1], held: all}":                          "",
		"{nodes: [w-3], released: all}":                      "0 of 1 nodes are released",
		"{nodes: [w-3], released: 0, held: 0}":               "",
		"{released: 1, running: 4, waiting: 2}":              "",
		"{running: 5}":                                       "4 pods run, expected 5",
		"{waiting: 0, running: 4}":                           "2 pods wait, expected 0",
		"{rule: net, standing: Conflict, says: first}":       "",
		"{rule: net, standing: Enforced}":                    "rule net is Conflict (rule first is older), expected Enforced",
		"{rule: net, says: second}":                          `expected "second" in it`,
		"{rule: other, standing: Enforced}":                  "there is no rule other",
		"{rule: other, standing: Gone}":                      "",
		"{rule: net, standing: Gone}":                        "rule net is Conflict",
		"{why: {node: w-1, contains: held by rule net}}":     "",
		"{why: {node: w-1, contains: something else}}":       `the story of w-1 is "w-1 is held by rule net"`,
		"{bornHeld: {pool: workers}}":                        "",
		"{bornHeld: {pool: others}}":                         "born without the taint",
		"{tolerated: {app: agent}}":                          "",
		"{tolerated: {app: other}}":                          "a DaemonSet would get no toleration",
		"{held: 1, running: 9, bornHeld: {pool: elsewhere}}": "4 pods run",
	} {
		s := parse(t, story("- expect: "+expect))
		err := s.Steps[1].Expect.Unmet(world())
		switch {
		case complaint == "" && err != nil:
			t.Errorf("%s: %v", expect, err)
		case complaint != "" && (err == nil || !strings.Contains(err.Error(), complaint)):
			t.Errorf("%s: %v, want %q", expect, err, complaint)
		}
	}
}

func TestAllOfNothingIsNotAll(t *testing.T) {
	s := parse(t, "title: t\nabout: a\nsteps: [{expect: {held: all}}]")
	if s.Steps[0].Expect.Unmet(scenario.World{}) == nil {
		t.Error("all of no nodes are held")
	}
}

func TestAnErrorIsNoAnswer(t *testing.T) {
	w := world()
	w.Why = func(string) (string, error) { return "held by rule net", errors.New("away") }
	w.BornHeld = func(map[string]string) (bool, error) { return true, errors.New("away") }
	w.Tolerated = func(map[string]string) (bool, error) { return true, errors.New("away") }
	for _, expect := range []string{"{why: {node: w-1, contains: held}}", "{bornHeld: {a: b}}", "{tolerated: {a: b}}"} {
		s := parse(t, story("- expect: "+expect))
		if err := s.Steps[1].Expect.Unmet(w); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("%s: %v", expect, err)
		}
	}
}

func TestPatienceIsAMinuteUnlessSaid(t *testing.T) {
	s := parse(t, story("- expect: {held: 1}\n- expect: {held: 1, within: 5s, for: 2s}"))
	if got := s.Steps[1].Expect; got.Patience() != time.Minute || got.Lasting() != 0 {
		t.Errorf("patience %v, lasting %v", got.Patience(), got.Lasting())
	}
	if got := s.Steps[2].Expect; got.Patience() != 5*time.Second || got.Lasting() != 2*time.Second {
		t.Errorf("patience %v, lasting %v", got.Patience(), got.Lasting())
	}
}
