package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keepEvidence copies the logs of the nodes and the state of the cluster to bin/e2e.
func (l *Lab) keepEvidence(t *testing.T) {
	dir := filepath.Join(repository(), "bin", "e2e", strings.ReplaceAll(t.Name(), "/", "_"))
	_ = os.RemoveAll(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Log(err)
		return
	}
	for name, args := range map[string][]string{
		"nodes.yaml":    {"get", "nodes", "-o", "yaml"},
		"rules.yaml":    {"get", "nodereadinessrules", "-o", "yaml"},
		"podrules.yaml": {"get", "podreadinessrules", "-o", "yaml"},
		"leases.yaml":   {"get", "leases", "-n", "readygate-system", "-o", "yaml"},
		"pods.txt":      {"get", "pods", "-A", "-o", "wide"},
		"pods.yaml":     {"get", "pods", "-A", "-o", "yaml"},
		"events.txt":    {"events", "-A"},
		"manager.log":   {"logs", "-n", "readygate-system", "-l", "app.kubernetes.io/component=manager", "--prefix", "--tail=-1"},
		"reports.log":   {"logs", "-n", "readygate-system", "-l", "app.kubernetes.io/component=reporter", "--prefix", "--tail=-1"},
		"podgate.log":   {"logs", "-n", "readygate-system", "-l", "app.kubernetes.io/component=podgate", "--prefix", "--tail=-1"},
	} {
		out, err := l.Kubectl.Output(context.Background(), args...)
		if err != nil {
			out += err.Error()
		}
		_ = os.WriteFile(filepath.Join(dir, name), []byte(out), 0o644)
	}
	for _, n := range l.nodes {
		_ = os.CopyFS(filepath.Join(dir, n.Name), os.DirFS(n.Disk("/log")))
		_ = os.CopyFS(filepath.Join(dir, n.Name, "pods"), os.DirFS(n.Disk("/var/log/pods")))
	}
	t.Logf("logs of the nodes and the state of the cluster are in %s", dir)
}
