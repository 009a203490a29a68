package dashboard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

func TestExplanationShowsEverythingThatIsKnown(t *testing.T) {
	fleet, now := live.NewFleet(time.Now), time.Now()
	fleet.Put(made("network", network, now.Add(-time.Hour)),
		joined("worker-1", now.Add(-30*time.Minute)).held("network").says(network, corev1.ConditionFalse, "NoRoute", "no route to 10.0.0.1", now.Add(-4*time.Minute)).Node)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet, Explanation: func(ctx context.Context, node string) (view.Explanation, error) {
		explanation, _ := fleet.Explanation(ctx, node)
		explanation.Chapters[0].Requirements[0].Writer = "flannel-agent"
		explanation.Chapters[0].Refused = "denied by a policy"
		explanation.Events = []view.Event{{At: now.Add(-time.Minute), Reason: "TaintAdded", Note: "Taint added", Count: 3}}
		explanation.Unseen = []string{"events of the node: permission denied"}
		return explanation, nil
	}}), 1280, 800)
	p.run(tile("worker-1") + ".click()")
	p.until("the explanation", panel+`.querySelector(".headline")`)
	text := value[string](p, panel+".innerText")
	for _, want := range []string{
		"worker-1 is held for 30m by rule network", "WHAT TO DO", "Check that component on this node:", "This rule holds this node. Held since 30m ago.",
		"readiness.k8s.io/network:NoSchedule · continuous", "Rejected: denied by a policy",
		network + " is False, must be True", "NoRoute: no route to 10.0.0.1", "since 4m", "written by flannel-agent",
		"TaintAdded (3 times)", "COULD NOT BE READ", "events of the node: permission denied", "Ready is True, joined 30m ago",
	} {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("the explanation lacks %q:\n%s", want, text)
		}
	}
}

func TestExplanationIsReadAgainWhenItsNodeChanges(t *testing.T) {
	fleet, machines := crowd(40)
	p := open(t, serve(t, dashboard.Options{Fleet: fleet}), 1280, 800)
	p.run(tile("worker-1") + ".click()")
	p.until("the explanation", panel+`.querySelector(".headline")?.dataset.state === "Held"`)
	fleet.Put(joined("worker-1", machines[0].CreationTimestamp.Time).released("network", network, time.Minute).Node)
	p.until("the explanation to change", panel+`.querySelector(".headline").dataset.state === "Released"`)
	p.run(`document.getElementById("panel-close").click()`)
	p.until("the panel to close", `!`+panel+`.open`)
}
