package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 3: routes disappear on one node while flannel's health endpoint still returns 200. The
// reporter that connects to other nodes reports False, the node is held and gets no new pods. After a restart
// of flannel the manager releases the node.
func TestABrokenNetworkHoldsTheNode(t *testing.T) {
	const taint, condition = "readiness.k8s.io/PodNetworkReady", "example.com/PodNetworkReady"
	l := lab.Start(t)
	nodes := l.JoinThree(t)
	l.Apply(t, healthyFlannel(t, l))
	install(t, l)
	l.Kubectl.Run(t, "label", "node", "--all", "node-role.kubernetes.io/worker=")
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", example("cni-readiness/functional"))
	l.EventuallyNodes(t, "proven", is(condition, corev1.ConditionTrue), "n1", "n2", "n3")
	l.EventuallyNodes(t, "released", released(taint), "n1", "n2", "n3")

	l.Step(t, "every node connects to the others")
	history := l.Watch(t)
	broken := nodes[1]
	broken.BreakRoutes(t)
	l.EventuallyNode(t, broken.Name, "held", held(taint))
	l.Step(t, broken.Name+" is held: its routes were removed")
	if answer := broken.Run(t, "wget", "-qO-", "http://127.0.0.1:8285/healthz"); !strings.Contains(answer, "running") {
		t.Errorf("flannel's health endpoint returns %q, so this is another scenario", answer)
	}
	workload(t, l, "elsewhere", 4, nil, anywhere)
	for _, pod := range working(t, l, "elsewhere", 4) {
		if pod.Spec.NodeName == broken.Name {
			t.Errorf("%s was scheduled to the node without a network", pod.Name)
		}
	}

	l.Kubectl.Run(t, "delete", "pod", "-n", "kube-flannel", "-l", "app=flannel", "--field-selector=spec.nodeName="+broken.Name)
	l.EventuallyNode(t, broken.Name, "released", released(taint))
	l.Step(t, broken.Name+" is released: flannel was restarted")
	for _, name := range []string{"n1", "n3"} { // they reach each other all the time
		history.Always(t, name, "released", released(taint))
	}
}

// healthyFlannel is flannel with its health endpoint enabled.
func healthyFlannel(t *testing.T, l *lab.Lab) string {
	t.Helper()
	const arg = "        - --kube-subnet-mgr\n"
	manifest := l.FlannelManifest(t)
	if !strings.Contains(manifest, arg) {
		t.Fatal(fmt.Errorf("flannel's manifest no longer has %q", arg))
	}
	return strings.Replace(manifest, arg, arg+"        - --healthz-port=8285\n", 1)
}
