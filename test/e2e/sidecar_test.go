package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 2: the guide's other way, the reporter as a container of the CNI's own pod, with the
// CNI's account. Role, container and rule are the guide's, with flannel in the place of Calico.
func TestReporterAsASidecar(t *testing.T) {
	const taint, condition = "readiness.k8s.io/NetworkReady", "network.k8s.io/FlannelReady"
	l := lab.Start(t)
	install(t, l)
	l.JoinThree(t, "--register-with-taints="+taint+"=pending:NoSchedule")
	history := l.Watch(t)
	managed(t, l)
	l.Kubectl.Run(t, "label", "node", "--all", "node-role.kubernetes.io/worker=")
	l.Apply(t, changed(t, "cni-readiness/sidecar/network-readiness-rule.yaml", "network.k8s.io/CalicoReady", condition))
	l.Apply(t, changed(t, "cni-readiness/sidecar/calico-rbac-node-status-patch-role.yaml", "name: calico-node\n  namespace: kube-system", "name: flannel\n  namespace: kube-flannel"))
	workload(t, l, "web", 3, nil)
	l.Apply(t, healthyFlannel(t, l))
	addSidecar(t, l, changed(t, "cni-readiness/sidecar/cni-patcher-sidecar.yaml",
		"http://localhost:9099/readiness", "http://localhost:8285/healthz", "network.k8s.io/CalicoReady", condition))
	l.EventuallyNodes(t, "released", released(taint), "n1", "n2", "n3")
	talk(t, l, working(t, l, "web", 3))
	for _, name := range []string{"n1", "n2", "n3"} {
		history.Always(t, name, "held until "+condition+" is True", func(node *corev1.Node) bool {
			return held(taint)(node) || is(condition, corev1.ConditionTrue)(node)
		})
	}
}

// addSidecar adds the containers to flannel's pods, as the guide's script does to Calico's.
func addSidecar(t *testing.T, l *lab.Lab, containers string) {
	t.Helper()
	var sidecars []corev1.Container
	if err := yaml.UnmarshalStrict([]byte(containers), &sidecars); err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": sidecars}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(file, patch, 0o644); err != nil {
		t.Fatal(err)
	}
	l.Kubectl.Run(t, "patch", "daemonset", "kube-flannel-ds", "-n", "kube-flannel", "--patch-file", file)
}
