package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scenario 5: a machine loses power and comes back; another is deleted, reinstalled and joins
// again. The first is the same node and was completed; the second is a new one.
func TestNodesRejoinAfterPowerLossAndReinstallation(t *testing.T) {
	l := start(t)
	history := l.Watch(t)
	ready := is(string(corev1.NodeReady), corev1.ConditionTrue)

	var before corev1.Node
	l.Get(t, &before, "", "n1")
	l.Node("n1").PowerOff(t)
	l.EventuallyNode(t, "n1", "lost", is(string(corev1.NodeReady), corev1.ConditionUnknown))
	l.Step(t, "n1 is lost: it is powered off")
	l.Node("n1").Boot(t)
	after := l.EventuallyNode(t, "n1", "back", func(node *corev1.Node) bool {
		return ready(node) && node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID
	})
	l.EventuallyNode(t, "n1", "reported again", func(node *corev1.Node) bool {
		return reportedAfter(node, &before)
	})
	if after.UID != before.UID {
		t.Error("n1 is another node after a reboot")
	}
	history.Always(t, "n1", "in use", completed(t, l))
	l.Step(t, "n1 is back from a reboot, and was not held")

	var old corev1.Node
	l.Get(t, &old, "", "n2")
	l.Kubectl.Run(t, "delete", "node", "n2", "--wait=false")
	l.Node("n2").PowerOff(t)
	l.Node("n2").Reinstall(t)
	l.Kubectl.Run(t, "wait", "--for=delete", "node/n2", "--timeout=60s")
	again := l.Watch(t)
	l.Node("n2").Boot(t)
	taintedAtCreation(t, again, "n2")
	back := l.EventuallyNode(t, "n2", "released", completed(t, l))
	if back.UID == old.UID || back.UID == types.UID("") {
		t.Error("n2 is the node it was before it was deleted")
	}
	l.Step(t, "n2 was deleted and joined again: tainted at creation, and released")

	l.Get(t, &before, "", "n3")
	l.Node("n3").Reboot(t)
	l.EventuallyNode(t, "n3", "back", func(node *corev1.Node) bool {
		return ready(node) && node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID
	})
	history.Always(t, "n3", "in use", completed(t, l))
	l.Step(t, "n3 rebooted before the control plane noticed")
	workload(t, l, "web", 3, nil)
	talk(t, l, working(t, l, "web", 3))
}

// reportedAfter reports whether the reporter has reported since the node was in that state.
func reportedAfter(node, before *corev1.Node) bool {
	heard := func(n *corev1.Node) int64 {
		for _, c := range n.Status.Conditions {
			if c.Type == flannelCondition {
				return c.LastHeartbeatTime.Unix()
			}
		}
		return 0
	}
	return heard(node) > heard(before)
}
