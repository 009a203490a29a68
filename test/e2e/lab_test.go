package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/e2e/lab"
)

// The lab itself: machines join and have a network when flannel runs; a disconnected machine is lost
// until it is connected again; one without a CNI configuration is not ready until it has one again.
func TestLabNodesJoinAndRecover(t *testing.T) {
	ready := is(string(corev1.NodeReady), corev1.ConditionTrue)
	l := lab.Start(t)
	nodes := l.JoinThree(t)
	l.EventuallyNodes(t, "there and not ready", is(string(corev1.NodeReady), corev1.ConditionFalse), "n1", "n2", "n3")
	l.Step(t, "the nodes are up")
	l.InstallFlannel(t)
	l.EventuallyNodes(t, "ready", ready, "n1", "n2", "n3")
	workload(t, l, "web", 3, nil)
	talk(t, l, working(t, l, "web", 3))
	l.Step(t, "pods of different nodes connect to each other")

	nodes[1].Disconnect(t)
	l.EventuallyNode(t, "n2", "lost", is(string(corev1.NodeReady), corev1.ConditionUnknown))
	nodes[1].Connect(t)
	l.EventuallyNode(t, "n2", "back", ready)
	l.Step(t, "n2 was disconnected, and is back")

	nodes[2].RemoveCNI(t)
	l.EventuallyNode(t, "n3", "not ready", is(string(corev1.NodeReady), corev1.ConditionFalse))
	l.Kubectl.Run(t, "delete", "pod", "-n", "kube-flannel", "-l", "app=flannel", "--field-selector=spec.nodeName=n3")
	l.EventuallyNode(t, "n3", "ready again", ready)
	l.Step(t, "n3 lost its CNI configuration, and has it again")
}
