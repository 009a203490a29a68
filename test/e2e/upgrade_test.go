package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

const waitingTaint = "readiness.k8s.io/driver"

// startWithChart is start with a reporter of the chart. A second rule, whose condition is never reported,
// holds n3.
func startWithChart(t *testing.T) *lab.Lab {
	t.Helper()
	l := lab.Start(t)
	install(t, l, "--values", testdata("flannel-values.yaml"))
	l.JoinThree(t, worker)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", example("flannel-readiness/network-readiness-rule.yaml"), "-f", testdata("waiting-rule.yaml"))
	l.Kubectl.Run(t, "label", "node", "n3", "example.com/gpu=yes")
	covered(t, l, flannelRule)
	covered(t, l, "waiting")
	l.InstallFlannel(t)
	l.EventuallyNodes(t, "completed", completed(t, l), "n1", "n2", "n3")
	l.EventuallyNode(t, "n3", "held", held(waitingTaint))
	l.Step(t, "n1 and n2 are in use, n3 is held")
	return l
}

func testdata(file string) string {
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		panic(err)
	}
	return path
}

// Scenario 7: an upgrade of the chart with rules in place changes the CRD and rolls manager and reporters. No
// node is released or held meanwhile, and nodes that are created meanwhile are tainted at creation.
func TestUpgrade(t *testing.T) {
	l := startWithChart(t)
	history := l.Watch(t)
	newer := newerChart(t)

	created, stop := createNodes(t, l)
	l.Helm(t, "upgrade", release, newer, "--namespace", namespace, "--values", testdata("flannel-values.yaml"),
		"--set", "manager.extraArgs={--zap-log-level=debug}", "--set", "reporter.image.tag=v0.1.0", "--set", "reporters[0].heartbeatPeriod=2m")
	l.Kubectl.Run(t, "rollout", "status", "deployment/readygate-manager", "-n", namespace, "--timeout=90s")
	l.Kubectl.Run(t, "rollout", "status", "daemonset/readygate-reporter-flannel", "-n", namespace, "--timeout=90s")
	l.Step(t, "upgraded")
	stop()
	l.Step(t, fmt.Sprintf("%d nodes were created meanwhile", len(created())))

	for name, state := range created() {
		if state != "" {
			t.Errorf("%s was not tainted at creation: %s", name, state)
		}
	}
	for _, name := range []string{"n1", "n2"} {
		history.Always(t, name, "in use", completed(t, l))
	}
	history.Always(t, "n3", "held", held(waitingTaint))
	var crd apiextensionsv1.CustomResourceDefinition
	l.Get(t, &crd, "", v1alpha1.CRDName)
	if description := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description; !strings.HasPrefix(description, "Newer: ") {
		t.Errorf("the CRD was not upgraded, its description is %q", description)
	}
	joinsHeldAndIsReleased(t, l, history, "n4")
}

// newerChart returns a chart of the next version, whose CRD has another description.
func newerChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "readygate")
	if err := os.CopyFS(dir, os.DirFS(chart())); err != nil {
		t.Fatal(err)
	}
	for file, change := range map[string][2]string{
		"Chart.yaml": {"\nversion: 0.", "\nversion: 9."},
		"files/crds/readiness.node.x-k8s.io_nodereadinessrules.yaml": {"NodeReadinessRule keeps a taint", "Newer: NodeReadinessRule keeps a taint"},
	} {
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), change[0], change[1], 1)
		if text == string(data) {
			t.Fatalf("%s no longer contains %q", file, change[0])
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// createNodes creates nodes without machines, one after the other, until it is stopped. It returns their
// names, each with its state if it was not tainted at creation.
func createNodes(t *testing.T, l *lab.Lab) (states func() map[string]string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	created, done := map[string]string{}, make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			node := testenv.Node(fmt.Sprintf("created-%d", i), workers)
			if err := l.Client.Create(ctx, node); err != nil {
				continue // stopped, or too busy: the next one
			}
			created[node.Name] = ""
			if !held(flannelTaint)(node) {
				created[node.Name] = lab.Describe(node)
			}
			_ = l.Client.Delete(ctx, node)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	stop = func() {
		cancel()
		<-done
		if len(created) == 0 {
			t.Error("no node was created meanwhile")
		}
	}
	return func() map[string]string { return created }, stop
}
