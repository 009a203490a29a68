package print_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/print"
	"github.com/readygate/readygate/internal/plugin/view"
)

func TestNodeExplanation(t *testing.T) {
	explanation := view.Explanation{
		Node:     view.Node{Name: "w-1", Created: ago(60), State: noderule.Held, Ready: corev1.ConditionTrue, Unschedulable: true, OtherTaints: []string{"a:NoSchedule"}},
		Headline: "w-1 is held for 20m by rule network",
		Chapters: []view.Chapter{
			{
				Standing: view.Standing{Rule: "network", Taint: "readiness.k8s.io/NetworkReady:NoSchedule"}, Mode: v1alpha1.EnforcementModeContinuous, Text: "holds this node", AnyOf: true,
				Requirements: []view.Requirement{
					{Type: "example.com/NetworkReady", Required: corev1.ConditionTrue, Current: corev1.ConditionFalse, Since: ago(20), Heartbeat: ago(1), Writer: "readygate-reporter", Reason: "CheckFailed", Message: "connection refused"},
					{Type: "example.com/DNSReady", Required: corev1.ConditionTrue, Current: corev1.ConditionUnknown, Absent: true},
					{Type: "KernelDeadlock", Required: corev1.ConditionFalse, Current: corev1.ConditionFalse, Met: true, Absent: true, Default: true},
				},
				Refused: "policy says no",
			},
			{
				Standing: view.Standing{Rule: "gpu", Taint: "readiness.k8s.io/GPU:NoSchedule"}, Mode: v1alpha1.EnforcementModeBootstrapOnly, Text: "has released this node permanently (bootstrap-only)",
				Requirements: []view.Requirement{{Type: "GPU", Required: corev1.ConditionTrue, Current: corev1.ConditionTrue, Met: true}},
			},
		},
		Events: []view.Event{
			{At: ago(20), Type: corev1.EventTypeNormal, Reason: "TaintAdded", Note: "Taint added by rule network"},
			{At: ago(2), Type: corev1.EventTypeWarning, Reason: "WriteRefused", Note: "policy says no", Count: 3},
		},
		Next:   []string{"Check that component.", "Uncordon it."},
		Unseen: []string{"pods: permission denied"},
	}
	compare(t, print.Explanation(explanation, noon), `
w-1 is held for 20m by rule network.

Rule network (continuous, taint readiness.k8s.io/NetworkReady:NoSchedule)
  It holds this node.
  Only one of its requirements must be met (anyOf).
  missing  example.com/NetworkReady is False, must be True
           unchanged for 20m; last heartbeat 60s ago; written by readygate-reporter; CheckFailed connection refused
  missing  example.com/DNSReady is not reported, must be True
  met      KernelDeadlock is not reported and counts as False (defaultStatus), must be False
  The API server rejects writes to this node: policy says no

Rule gpu (bootstrap-only, taint readiness.k8s.io/GPU:NoSchedule)
  It has released this node permanently (bootstrap-only).
  met      GPU is True, must be True

Node
  Ready is True, cordoned, 60m old
  Taints that belong to no rule: a:NoSchedule

Events
  20m ago  TaintAdded: Taint added by rule network
  2m ago  WriteRefused: policy says no (Warning) (3 times)

What to do
  - Check that component.
  - Uncordon it.

Could not be read
  - pods: permission denied
`)
}

func TestShortNodeExplanation(t *testing.T) {
	compare(t, print.Explanation(view.Explanation{Node: view.Node{Name: "w", Created: ago(3), Ready: corev1.ConditionTrue}, Headline: "no enforced rule selects w"}, noon), `
no enforced rule selects w.

Node
  Ready is True, 3m old
`)
}

func TestSimulation(t *testing.T) {
	compare(t, print.Simulation(view.Simulation{
		Nodes:    4,
		Replaced: []string{"network"},
		Rules: []view.Rule{
			{Name: "network", Taint: "readiness.k8s.io/N:NoExecute", Mode: v1alpha1.EnforcementModeContinuous, Standing: view.Simulated, Count: view.Count{Selected: 3, Held: 2, Released: 1}},
			{Name: "second", Taint: "readiness.k8s.io/N:NoExecute", Mode: v1alpha1.EnforcementModeContinuous, Standing: v1alpha1.ReasonConflict, Message: `rule "network" is older`},
			{Name: "gpu", Taint: "readiness.k8s.io/G:NoSchedule", Mode: v1alpha1.EnforcementModeBootstrapOnly, Standing: view.Simulated, Selector: "gpu=yes"},
		},
		Effects: []view.Effect{
			{Node: "w-1", Rule: "network", Change: noderule.Added, Taint: "readiness.k8s.io/N:NoExecute", Evicts: true, Missing: []view.Missing{{Type: "N", Current: corev1.ConditionUnknown, Required: corev1.ConditionTrue, Absent: true}}},
			{Node: "w-2", Rule: "network", Change: noderule.Adopted, Taint: "readiness.k8s.io/N:NoExecute"},
			{Node: "w-3", Rule: "network", Change: noderule.Removed, Taint: "readiness.k8s.io/N:NoExecute"},
		},
	}, false), `
If this were applied now (4 nodes evaluated, nothing changed):

RULE      TAINT                           MODE             SELECTED   HELD   RELEASED
network   readiness.k8s.io/N:NoExecute    continuous       3          2      1
second    readiness.k8s.io/N:NoExecute    continuous       0          0      0
gpu       readiness.k8s.io/G:NoSchedule   bootstrap-only   0          0      0

Rule network cannot be changed in place: this shows the effect of deleting and recreating it.
Rule second would have no effect (Conflict): rule "network" is older
Rule gpu selects no node (gpu=yes): compare with kubectl get nodes --show-labels
EVICTIONS: pods that do not tolerate readiness.k8s.io/N:NoExecute would be evicted from 1 node.
3 nodes would change:

NODE   CHANGE            RULE      WHY
w-1    is held, EVICTS   network   N is not reported, must be True
w-2    stays held        network   -
w-3    is released       network   -
`)
}

func TestALongSimulationIsCut(t *testing.T) {
	simulation := view.Simulation{Nodes: 80, Effects: make([]view.Effect, 80)}
	short, long := print.Simulation(simulation, false), print.Simulation(simulation, true)
	if last := short[len(short)-1]; last != "… and 30 more: -o wide lists them all" || len(long) != len(short)+29 {
		t.Errorf("%q, %d and %d lines", last, len(short), len(long))
	}
	if none := print.Simulation(view.Simulation{}, false); none[len(none)-1] != "No node taints would change." {
		t.Errorf("%q", none)
	}
}
