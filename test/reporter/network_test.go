package reporter_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/testenv"
)

// network simulates the pod network of a few nodes, with two Services for their
// reporters: one for ready reporters, one for all. It can be cut.
type network struct {
	t       *testing.T
	mu      sync.Mutex
	pods    map[string]string // address of the reporter, by node
	ready   map[string]bool
	cut     map[string]bool // nodes that no packet leaves or enters
	proxies []*proxy
}

// proxy is a Service on one node, like kube-proxy. If it has no endpoint,
// it refuses connections.
type proxy struct {
	node, address string
	onlyReady     bool
	listener      net.Listener // nil: no endpoint
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, pods: map[string]string{}, ready: map[string]bool{}, cut: map[string]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	var kubelet sync.WaitGroup
	kubelet.Go(func() { n.probe(ctx) })
	t.Cleanup(func() {
		stop()
		kubelet.Wait()
		n.change(func() { clear(n.pods) }) // which closes all listeners
	})
	return n
}

// held is an address on loopback that the system does not assign to other listeners: a bound socket that
// does not listen reserves it, and on Linux a test can still listen on it.
func held(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return testenv.FreeAddress(t)
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// join adds a pod on a node, whose process need not run yet, and returns the addresses of the
// pod and of the Services there.
func (n *network) join(node string) (pod, ready, everyone string) {
	n.t.Helper()
	pod, ready, everyone = held(n.t), held(n.t), held(n.t)
	n.change(func() {
		n.pods[node] = pod
		n.proxies = append(n.proxies, &proxy{node: node, address: ready, onlyReady: true}, &proxy{node: node, address: everyone})
	})
	return pod, ready, everyone
}

// leave removes the pod of a node from the Services.
func (n *network) leave(node string) {
	n.change(func() { delete(n.pods, node) })
}

// setCut cuts nodes off, or connects them again.
func (n *network) setCut(cut bool, nodes ...string) {
	n.change(func() {
		for _, node := range nodes {
			n.cut[node] = cut
		}
	})
}

// change changes the network and updates the Services.
func (n *network) change(how func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how()
	for _, p := range n.proxies {
		switch behind := n.behind(p); {
		case len(behind) == 0 && p.listener != nil:
			_ = p.listener.Close()
			p.listener = nil
		case len(behind) > 0 && p.listener == nil:
			listener, err := net.Listen("tcp", p.address)
			if err != nil {
				n.t.Errorf("the Service at %s: %v", p.address, err)
				continue
			}
			p.listener = listener
			go n.serve(p, listener)
		}
	}
}

// behind returns the nodes with an endpoint of a Service.
func (n *network) behind(p *proxy) []string {
	var nodes []string
	for node := range n.pods {
		if !p.onlyReady || n.ready[node] {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (n *network) serve(p *proxy, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go n.forward(p, conn)
	}
}

// forward connects to an endpoint of a Service, unless the network between the nodes is cut.
func (n *network) forward(p *proxy, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the test checks the data
	n.mu.Lock()
	nodes := n.behind(p)
	if len(nodes) == 0 {
		n.mu.Unlock()
		return
	}
	to := nodes[rand.IntN(len(nodes))]
	cut, address := to != p.node && (n.cut[p.node] || n.cut[to]), n.pods[to]
	n.mu.Unlock()
	if cut {
		_, _ = io.Copy(io.Discard, conn) // until the other side gives up
		return
	}
	pod, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer pod.Close() //nolint:errcheck // as above
	go func() { _, _ = io.Copy(pod, conn) }()
	_, _ = io.Copy(conn, pod)
}

// probe requests /readyz of every reporter, like kubelets.
func (n *network) probe(ctx context.Context) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		n.mu.Lock()
		pods := map[string]string{}
		for node, address := range n.pods {
			pods[node] = address
		}
		n.mu.Unlock()
		for node, address := range pods {
			ready := isReady(ctx, client, address)
			n.change(func() { n.ready[node] = ready })
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func isReady(ctx context.Context, client *http.Client, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
