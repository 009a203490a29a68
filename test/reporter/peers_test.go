package reporter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testkit"
)

const podNetworkReady = "example.com/PodNetworkReady"

// network is the network of pods of a few nodes, and the Service in front of their reporters.
type network struct {
	mu    sync.Mutex
	pods  map[string]string // address of the reporter, by node
	ready map[string]bool
	cut   map[string]bool // nodes that no packet leaves or enters
}

// reach is what becomes of a connection from a node to the Service: the address that it ends
// at, "" where it ends nowhere, or an error where nobody is behind the Service.
func (n *network) reach(from string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var behind []string
	for node := range maps.Keys(n.pods) {
		if n.ready[node] {
			behind = append(behind, node)
		}
	}
	if len(behind) == 0 {
		return "", errors.New("nobody is ready")
	}
	to := behind[rand.IntN(len(behind))]
	if to != from && (n.cut[from] || n.cut[to]) {
		return "", nil
	}
	return n.pods[to], nil
}

func (n *network) setCut(node string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[node] = cut
}

// probe does what kubelets do: it asks /readyz of every reporter.
func (n *network) probe(ctx context.Context) {
	for ctx.Err() == nil {
		n.mu.Lock()
		pods := maps.Clone(n.pods)
		n.mu.Unlock()
		for node, address := range pods {
			response, err := http.Get("http://" + address + "/readyz") //nolint:noctx // on loopback, and short
			ready := err == nil && response.StatusCode == http.StatusOK
			if err == nil {
				_ = response.Body.Close()
			}
			n.mu.Lock()
			n.ready[node] = ready
			n.mu.Unlock()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// service serves the Service for one node, as its kube-proxy does, and returns its address.
// Where nobody is behind it, connections are refused.
func (n *network) service(t *testing.T, node string) string {
	t.Helper()
	address := testkit.FreeAddress(t)
	go func() {
		for t.Context().Err() == nil {
			if _, err := n.reach(node); err == nil {
				n.accept(t.Context(), node, address)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return address
}

// accept takes connections while somebody is behind the Service.
func (n *network) accept(ctx context.Context, node, address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return // tried again
	}
	defer listener.Close() //nolint:errcheck // nothing is lost
	for ctx.Err() == nil {
		if _, err := n.reach(node); err != nil {
			return
		}
		_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
		if conn, err := listener.Accept(); err == nil {
			go n.forward(conn, node)
		}
	}
}

func (n *network) forward(conn net.Conn, from string) {
	defer conn.Close() //nolint:errcheck // the test is about what is said on it
	to, err := n.reach(from)
	switch {
	case err != nil:
	case to == "":
		_, _ = io.Copy(io.Discard, conn) // until the other side gives up
	default:
		peer, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer peer.Close() //nolint:errcheck // as above
		go func() { _, _ = io.Copy(peer, conn) }()
		_, _ = io.Copy(conn, peer)
	}
}

// join starts a reporter on a new node of the network.
func (n *network) join(t *testing.T, c *testkit.Cluster, name string) *station {
	t.Helper()
	s := newStationNamed(t, c, nameOf(t)+"-"+name)
	file := filepath.Join(t.TempDir(), "config.yaml")
	config := fmt.Sprintf(`apiVersion: readygate.dev/v1alpha1
kind: ReporterConfig
checks:
- conditionType: %s
  interval: 200ms
  timeout: 600ms
  failureThreshold: 2
  holdDown: 1s
  peers: {address: %q, patience: 1s}
`, podNetworkReady, n.service(t, name))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testkit.StartReporter(t, s.kubeconfig, nil, "--config", file)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[name] = p.Metrics
	return s
}

// A node whose network is cut is found, and the others are not held back by it.
func TestReportersReachEachOther(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	n := &network{pods: map[string]string{}, ready: map[string]bool{}, cut: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go n.probe(ctx)

	first := n.join(t, c, "a")
	alone := first.eventually(t, podNetworkReady, "True, though it is alone", is(corev1.ConditionTrue))
	if alone.Reason != "NoPeers" {
		t.Errorf("alone it says %+v", alone)
	}
	others := []*station{first, n.join(t, c, "b"), n.join(t, c, "c")}
	for _, s := range others {
		s.eventually(t, podNetworkReady, "a peer reached", func(c *corev1.NodeCondition) bool {
			return c.Status == corev1.ConditionTrue && c.Reason == "PeerReached"
		})
	}

	n.setCut("b", true)
	cut := others[1].eventually(t, podNetworkReady, "False when its network is cut", is(corev1.ConditionFalse))
	if cut.Reason != "PeersUnreachable" {
		t.Errorf("cut off it says %+v", cut)
	}
	for _, s := range []*station{others[0], others[2]} {
		if now, err := s.condition(t.Context(), podNetworkReady); err != nil || now.Status != corev1.ConditionTrue {
			t.Errorf("%s is held back: %+v, %v", s.node, now, err)
		}
	}
	n.setCut("b", false)
	others[1].eventually(t, podNetworkReady, "True again", is(corev1.ConditionTrue))
}
