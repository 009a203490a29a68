package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/test/e2e/lab"
)

// calicoStandIn serves Calico's health endpoint. The test measures the guide's reporter.
const calicoStandIn = `apiVersion: v1
kind: Pod
metadata: {name: calico-stand-in, namespace: kube-system}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  tolerations: [{operator: Exists}]
  containers:
  - name: web
    image: lab/busybox:1
    env: [{name: PATH, value: /bin}]
    command: [/bin/sh, -c, "mkdir /www && echo ready >/www/readiness && exec httpd -f -p 127.0.0.1:9099 -h /www"]
`

// Scenario 9: the reporter runs for five minutes with the limits of the guide, 10m CPU and 32Mi. Go starts
// parallel tests of the last file early, and this test mostly waits.
func TestTheGuidesLimitsSuffice(t *testing.T) {
	const lives = 5 * time.Minute
	l := lab.Start(t)
	n := l.Join(t, "n1")
	l.Apply(t, calicoStandIn)
	for _, file := range []string{"calico-rbac-node-status-patch-role.yaml", "cni-reporter-ds.yaml", "cni-reporter-policy.yaml"} {
		l.Kubectl.Run(t, "apply", "-f", example("cni-readiness/"+file))
	}
	l.EventuallyNode(t, n.Name, "reported", is("projectcalico.org/CalicoReady", corev1.ConditionTrue))
	started := podsOf(t, l, "kube-system", "cni-reporter")[0]

	timer := time.NewTimer(lives)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	pods := podsOf(t, l, "kube-system", "cni-reporter")
	if len(pods) != 1 || pods[0].UID != started.UID {
		t.Fatalf("the reporter's pod was replaced: %v", pods)
	}
	status := pods[0].Status.ContainerStatuses[0]
	if status.RestartCount > 0 || status.State.Running == nil {
		t.Fatalf("the reporter was restarted %d times: %+v", status.RestartCount, status.LastTerminationState)
	}
	dir := n.Cgroup("memory", filepath.Join("kubepods", "pod"+string(pods[0].UID), strings.TrimPrefix(status.ContainerID, "containerd://")))
	used, most := "memory.usage_in_bytes", "memory.limit_in_bytes"
	if lab.Unified() {
		used, most = "memory.current", "memory.max"
	}
	usage, limit := bytesIn(t, dir, used), bytesIn(t, dir, most)
	t.Logf("after %v the cgroup of the reporter has %.1f MiB of %.1f MiB", lives, mebi(usage), mebi(limit))
	if limit != 32<<20 {
		t.Errorf("the limit is %d bytes, not the guide's 32Mi", limit)
	}
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

func bytesIn(t *testing.T, dir, file string) int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
