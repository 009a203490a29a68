package demo_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/internal/demo"
	"github.com/readygate/readygate/internal/scenario"
)

// reportersOf are the reporters of a scenario with these components; they can reach no cluster.
func reportersOf(t *testing.T, components map[string]scenario.Component) (demo.Reporters, demo.Endpoints) {
	t.Helper()
	e, err := demo.ServeEndpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	r := demo.NewReporters(t.TempDir(), e, components)
	t.Cleanup(func() { // the context of the test has ended
		if err := r.Wait(); err != nil {
			t.Error(err)
		}
	})
	return r, e
}

func TestOfSeveralHeartbeatsTheShortestCounts(t *testing.T) {
	beat := func(d time.Duration) *scenario.Duration { return &scenario.Duration{Duration: d} }
	r, _ := reportersOf(t, map[string]scenario.Component{
		"a": {Condition: "example.com/A", Heartbeat: beat(20 * time.Second)},
		"b": {Condition: "example.com/B"},
		"c": {Condition: "example.com/C", Heartbeat: beat(15 * time.Second)},
		"d": {Condition: "example.com/D", Heartbeat: beat(30 * time.Second)},
	})
	for node, components := range map[string][]string{"all": {"a", "b", "c", "d"}, "none": {"b"}} {
		if err := r.Install(node, components...); err != nil {
			t.Fatal(err)
		}
	}
	config, err := r.Config("all")
	if err != nil {
		t.Fatal(err)
	}
	if config.HeartbeatPeriod == nil || config.HeartbeatPeriod.Duration != 15*time.Second {
		t.Errorf("the heartbeat is %v, want 15s", config.HeartbeatPeriod)
	}
	if config, err = r.Config("none"); err != nil {
		t.Fatal(err)
	}
	if config.HeartbeatPeriod != nil {
		t.Errorf("the heartbeat is %v, want the reporter's own", config.HeartbeatPeriod)
	}
}

func TestAfterABootAReporterRunsIfItRanBefore(t *testing.T) {
	r, _ := reportersOf(t, map[string]scenario.Component{"net": {Condition: "example.com/N"}})
	expect := func(node string, want bool, when string) {
		t.Helper()
		if got := r.Runs(node); got != want {
			t.Errorf("%s the reporter of %s runs: %v, want %v", when, node, got, want)
		}
	}
	for _, node := range []string{"ran", "quiet"} {
		if err := r.Install(node, "net"); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Run(t.Context(), "ran", true); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"ran", "quiet"} {
		r.ShutDown(node)
		r.ShutDown(node) // as it goes, and as it is back
		expect(node, false, "while it is down")
		if err := r.BootNode(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	expect("ran", true, "after the boot")
	expect("quiet", false, "after the boot")

	r.ShutDown("ran")
	if err := r.Run(t.Context(), "ran", false); err != nil {
		t.Fatal(err)
	}
	if err := r.BootNode(t.Context(), "ran"); err != nil {
		t.Fatal(err)
	}
	expect("ran", false, "after a step that says so")
}
