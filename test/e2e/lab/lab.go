package lab

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

// Lab is a cluster: a control plane with nothing installed, and the nodes that joined.
type Lab struct {
	*testenv.Cluster
	// Kubectl has the rights of a cluster administrator.
	Kubectl *testenv.Kubectl

	dir     string
	started time.Time
	nodes   map[string]*Node
}

// machines counts the machines of all labs, which share a switch.
var machines atomic.Int32

// Start starts a control plane without nodes, and removes everything when the test ends. Where the
// lab cannot run, the test is skipped, with the reason. Labs share only the switch, so their tests
// run in parallel.
func Start(t *testing.T) *Lab {
	t.Helper()
	t.Parallel()
	if unavailable != "" {
		t.Skip(unavailable)
	}
	started := time.Now()
	if err := startRegistry(); err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{
		Binaries: testenv.Binaries(),
		// A node without a lease renewal for 12 s is lost; kubelets renew their leases every 2 s.
		ControllerManagerArgs: []string{"--node-monitor-period=1s", "--node-monitor-grace-period=12s"},

		Network: &controlplane.Network{Address: planeAddress, Services: services, ServiceAddress: firstService, Pods: pods},
	})
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	cluster, err := testenv.Connect(plane)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{Cluster: cluster, dir: dir, started: started, nodes: map[string]*Node{}}
	l.Kubectl = cluster.Kubectl(t)
	t.Cleanup(func() { l.end(t) })
	if err := plane.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := plane.StartScheduler(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// end keeps logs if the test failed, and powers off the nodes.
func (l *Lab) end(t *testing.T) {
	if t.Failed() {
		l.keepEvidence(t)
	}
	for _, n := range l.nodes {
		if err := n.powerOff(); err != nil {
			t.Errorf("ending %s: %v", n.Name, err)
		}
	}
	if err := os.RemoveAll(l.dir); err != nil {
		t.Errorf("removing the nodes' disks: %v", err)
	}
}

// Helm runs helm in kubectl's home directory. It must succeed.
func (l *Lab) Helm(t testing.TB, args ...string) string {
	t.Helper()
	return l.Kubectl.Tool(t, filepath.Join(repository(), "bin", "chart", "helm"), args...)
}

// Step logs the step that a scenario has reached, with the time.
func (l *Lab) Step(t *testing.T, what string) {
	t.Helper()
	t.Logf("%5.1fs  %s", time.Since(l.started).Seconds(), what)
}

// Node returns the node with this name, which must have joined.
func (l *Lab) Node(name string) *Node { return l.nodes[name] }

// Join boots a new machine, and returns when its kubelet has created its Node. The arguments
// are added to the kubelet's own, e.g. --node-labels=example.com/pool=workers.
func (l *Lab) Join(t *testing.T, name string, kubeletArgs ...string) *Node {
	t.Helper()
	n := l.bootNew(t, name, kubeletArgs)
	l.awaitRegistered(t, name)
	return n
}

// awaitRegistered waits for the Nodes, so that a command for all nodes includes them.
func (l *Lab) awaitRegistered(t *testing.T, names ...string) {
	t.Helper()
	l.EventuallyNodes(t, "registered", func(*corev1.Node) bool { return true }, names...)
}

func (l *Lab) bootNew(t *testing.T, name string, kubeletArgs []string) *Node {
	t.Helper()
	number := int(machines.Add(1))
	n := &Node{Name: name, Address: nodeAddress(number), number: number, lab: l, dir: filepath.Join(l.dir, name), kubeletArgs: kubeletArgs}
	l.nodes[name] = n
	if err := n.install(); err != nil {
		t.Fatalf("installing %s: %v", name, err)
	}
	n.Boot(t)
	return n
}

// JoinThree joins n1, n2 and n3.
func (l *Lab) JoinThree(t *testing.T, kubeletArgs ...string) []*Node {
	t.Helper()
	var nodes []*Node
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, l.bootNew(t, name, kubeletArgs))
	}
	l.awaitRegistered(t, "n1", "n2", "n3")
	return nodes
}
