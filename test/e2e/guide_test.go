package e2e_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/e2e/lab"
)

const thirty = 30

var workers = map[string]string{"example.com/pool": "workers"}

// Scenario 1, as in the guide: kubelets register with the taint, an administrator labels the
// nodes after they joined, and pods that were created before start only when the network works.
func TestNodesWithTheKubeletsFlag(t *testing.T) {
	l := lab.Start(t)
	install(t, l)
	workload(t, l, "web", thirty, map[string]string{"node-role.kubernetes.io/worker": ""})
	rule := changed(t, "flannel-readiness/network-readiness-rule.yaml", `example.com/pool: "workers"`, `node-role.kubernetes.io/worker: ""`)
	nodes := l.JoinThree(t, "--register-with-taints="+flannelTaint+"=pending:NoSchedule")
	l.EventuallyNodes(t, "held by its kubelet", held(flannelTaint), "n1", "n2", "n3")
	history := l.Watch(t)
	l.Kubectl.Run(t, "label", "node", "--all", "node-role.kubernetes.io/worker=")
	managed(t, l)
	l.Apply(t, rule)
	applyReporter(t, l)
	l.InstallFlannel(t)
	releasedWhenTheNetworkWorks(t, l, history, nodes)
}

// Scenario 1 with a label that kubelets set, without a taint flag: the API server creates nodes with
// the taint. The manager runs on a node that the rule does not select.
func TestNodesTaintedAtCreation(t *testing.T) {
	l := lab.Start(t)
	l.Join(t, "infra")
	install(t, l)
	workload(t, l, "web", thirty, workers)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", example("flannel-readiness/network-readiness-rule.yaml"))
	applyReporter(t, l)
	covered(t, l, flannelRule)
	history := l.Watch(t)
	nodes := l.JoinThree(t, worker)
	for _, n := range nodes {
		taintedAtCreation(t, history, n.Name)
	}
	l.InstallFlannel(t)
	releasedWhenTheNetworkWorks(t, l, history, nodes)
}

// The same without Readygate: the scheduler binds pods to nodes that are Ready but have no network, and
// they fail. This shows that the other two tests can fail.
func TestWithoutReadygatePodsFail(t *testing.T) {
	l := lab.Start(t)
	workload(t, l, "web", thirty, workers)
	l.JoinThree(t, worker)
	l.InstallFlannel(t)
	working(t, l, "web", thirty)
	failed := failures(t, l)
	if len(failed) == 0 {
		t.Error("no pod failed to start: the scenarios with Readygate prove nothing here")
	}
	t.Logf("%d pods failed to start at first, e.g. %s", len(failed), first(failed))
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func applyReporter(t *testing.T, l *lab.Lab) {
	t.Helper()
	l.Kubectl.Run(t, "apply", "-f", example("flannel-readiness/flannel-reporter.yaml"), "-f", example("flannel-readiness/flannel-reporter-policy.yaml"))
}

// releasedWhenTheNetworkWorks is the end of both scenarios.
func releasedWhenTheNetworkWorks(t *testing.T, l *lab.Lab, history *lab.History, nodes []*lab.Node) {
	t.Helper()
	for _, n := range nodes {
		l.EventuallyNode(t, n.Name, "released", func(node *corev1.Node) bool {
			if held(flannelTaint)(node) {
				return false
			}
			// Before flanneld has written this file, every pod fails.
			if _, err := os.Stat(n.File("/run/flannel/subnet.env")); err != nil {
				t.Errorf("%s was released before its network worked: %v", n.Name, err)
			}
			return true
		})
	}
	pods := working(t, l, "web", thirty)
	talk(t, l, pods)
	if failed := failures(t, l); len(failed) > 0 {
		t.Errorf("%d pods failed to start: %v", len(failed), failed)
	}
	for _, n := range nodes {
		heldUntilTheConditionIsTrue(t, history, n.Name)
	}
}

// heldUntilTheConditionIsTrue: the node has the taint until the condition is True, and never again.
func heldUntilTheConditionIsTrue(t *testing.T, history *lab.History, node string) {
	t.Helper()
	free, waited := false, 0
	for _, s := range history.Of(node) {
		switch now := released(flannelTaint)(s.Node); {
		case now && !is(flannelCondition, corev1.ConditionTrue)(s.Node):
			t.Errorf("%s was released without the condition: %s", node, lab.Describe(s.Node))
		case free && !now:
			t.Errorf("%s was held again: %s", node, lab.Describe(s.Node))
		case !now:
			if is(string(corev1.NodeReady), corev1.ConditionTrue)(s.Node) {
				waited++
			}
		default:
			free = true
		}
	}
	t.Logf("%s: held in %d states in which it was Ready", node, waited)
}
