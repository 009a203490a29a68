package print_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

// guarded are nodes with an active safety field, one node per field.
var guarded = []view.Node{
	{
		Name: "w-1", Created: ago(60), State: noderule.Held, Since: ago(20), Settled: true,
		Rules: []view.Standing{
			{Rule: "storage", State: noderule.Released, Settled: true, Cause: noderule.CauseDependency, WaitsFor: "network"},
			{Rule: "network", State: noderule.Held, Held: true, Settled: true, Stuck: true, Missing: []view.Missing{{Type: "N", Current: corev1.ConditionUnknown, WhyUnknown: "no heartbeat for more than 2m0s"}}},
		},
	},
	{
		Name: "w-2", Created: ago(60), State: noderule.Released, Settled: true,
		Rules: []view.Standing{{Rule: "network", State: noderule.Released, Settled: true, Cause: noderule.CauseLimit, Missing: []view.Missing{{Type: "N", Current: corev1.ConditionFalse}}}},
	},
	{
		Name: "w-3", Created: ago(60), State: noderule.Held, Since: ago(1), Settled: true,
		Rules: []view.Standing{{Rule: "storage", State: noderule.Held, Held: true, Settled: true, Cause: noderule.CauseMinReady, Until: noon.Add(12 * time.Second)}},
	},
	{
		Name: "w-4", Created: ago(60), State: noderule.Held,
		Rules: []view.Standing{
			{Rule: "network", State: noderule.Held, Held: true, Cause: noderule.CauseNotReady},
			{Rule: "trial", State: noderule.Held, Preview: true, Stuck: true, Cause: noderule.CauseLimit},
		},
	},
	{
		Name: "w-5", Created: ago(60), State: noderule.Released, Settled: true,
		Rules: []view.Standing{{Rule: "network", State: noderule.Released, Settled: true, Cause: noderule.CauseDeadline, Missing: []view.Missing{{Type: "N", Absent: true}}}},
	},
}

func TestNodesTableShowsTheActiveSafetyField(t *testing.T) {
	compare(t, print.Nodes(guarded, false, noon), `
NAME   STATE               HELD FOR   AGE   HELD BY   MISSING
w-1    Held, stuck         20m        60m   network   storage waits for rule network, N is Unknown (no heartbeat for more than 2m0s)
w-2    Released, limited   -          60m   -         network would hold it (maxUnavailable), N is False
w-3    Held                60s        60m   storage   storage is met, 12s left until 12:00:12 (minReadySeconds)
w-4    Held, changing      unknown    60m   network   not Ready, may return from a reboot
w-5    Released            -          60m   -         released at the deadline of network, N is not reported
`)
	if got := print.Tally(guarded); got != "5 nodes: 3 held, 2 released, 0 not selected; 1 stuck; 1 limited" {
		t.Errorf("got %q", got)
	}
	if got, want := print.Change(guarded[2], noon), "12:00:00 w-3 Held by storage: storage is met, 12s left until 12:00:12 (minReadySeconds)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRulesCountStuckAndLimitedNodes(t *testing.T) {
	row := func(name, taint, standing, message string, count view.Count) view.Rule {
		return view.Rule{
			Name: name, Created: ago(180), Taint: taint, Mode: v1alpha1.EnforcementModeContinuous,
			Standing: standing, Message: message, AtCreation: v1alpha1.ReasonPolicyActive, Count: count,
		}
	}
	lonely := row("storage", "readiness.k8s.io/S:NoSchedule", v1alpha1.ReasonEnforced, "all is well", view.Count{Selected: 2, Held: 1, Released: 1})
	lonely.Blocked = "DaemonSet a/b does not tolerate the taint"
	limited := row("network", "readiness.k8s.io/N:NoSchedule", v1alpha1.ReasonLimited, "1 node stays released", view.Count{Selected: 5, Held: 2, Released: 3, Stuck: 1, Limited: 1})
	limited.Others, lonely.Others = "a lease is renewed in namespace tenant", "a lease is renewed in namespace tenant"
	compare(t, print.Rules([]view.Rule{limited, lonely}, false, noon), `
NAME      TAINT                           MODE         SELECTED   HELD          RELEASED        STANDING   AT-CREATION    AGE
network   readiness.k8s.io/N:NoSchedule   continuous   5          2 (1 stuck)   3 (1 limited)   Limited    PolicyActive   3h
storage   readiness.k8s.io/S:NoSchedule   continuous   2          1             1               Enforced   PolicyActive   3h

Other controllers: a lease is renewed in namespace tenant
network is Limited: 1 node stays released
storage, reporters: DaemonSet a/b does not tolerate the taint
`)
}

func TestExplanationNamesTheActiveSafetyField(t *testing.T) {
	explanation := view.Explanation{
		Node:     view.Node{Name: "w-1", Created: ago(60), State: noderule.Held, Ready: corev1.ConditionTrue},
		Headline: "w-1 is held",
		Chapters: []view.Chapter{
			{
				Standing: view.Standing{
					Rule: "network", Taint: "readiness.k8s.io/N:NoSchedule", Held: true, Stuck: true,
					Missing: []view.Missing{{Type: "N", WhyUnknown: "no heartbeat for more than 2m0s"}},
				},
				Mode: v1alpha1.EnforcementModeContinuous, Text: "holds this node",
				Requirements: []view.Requirement{
					{Type: "N", Required: corev1.ConditionTrue, Current: corev1.ConditionUnknown, Heartbeat: ago(3), WhyUnknown: "no heartbeat for more than 2m0s"},
					{Type: "D", Required: corev1.ConditionTrue, Current: corev1.ConditionTrue, Met: true},
				},
			},
			{
				Standing: view.Standing{Rule: "storage", Taint: "readiness.k8s.io/S:NoSchedule", Held: true, Cause: noderule.CauseMinReady, Until: noon.Add(12 * time.Second)},
				Mode:     v1alpha1.EnforcementModeContinuous, Text: "holds this node: its requirements are met and must remain met for 30s (minReadySeconds); 12s left",
			},
		},
	}
	compare(t, print.Explanation(explanation, noon), `
w-1 is held.

Rule network (continuous, taint readiness.k8s.io/N:NoSchedule)
  It holds this node.
  It has held this node for longer than its progressDeadlineSeconds: the node is stuck.
  missing  N is Unknown (no heartbeat for more than 2m0s), must be True
           last heartbeat 3m ago
  met      D is True, must be True

Rule storage (continuous, taint readiness.k8s.io/S:NoSchedule)
  It holds this node: its requirements are met and must remain met for 30s (minReadySeconds); 12s left.
  If its requirements remain met, the node is released at 12:00:12.

Node
  Ready is True, 60m old
`)
}
