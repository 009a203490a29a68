package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/test/e2e/lab"
)

// programming is the time that the policy engine takes per pod.
const programming = 3 * time.Second

// engine replaces a policy engine: on its nodes, it drops packets for port 80 between a pod that is not
// programmed and other nodes. It programs the pods of its apps, each some time after it has an address, and
// then sets a condition of the pod.
type engine struct {
	lab  *lab.Lab
	apps []string
	all  sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*lab.Node
	known map[string]bool
}

// startEngine starts an engine that ends with the test.
func startEngine(t *testing.T, l *lab.Lab, apps ...string) *engine {
	t.Helper()
	e := &engine{lab: l, apps: apps, nodes: map[string]*lab.Node{}, known: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	events, err := l.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		t.Fatal(err)
	}
	e.all.Go(func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && e.isNew(pod) {
				e.all.Go(func() {
					if err := e.program(ctx, pod); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
						t.Errorf("programming %s: %v", pod.Name, err)
					}
				})
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		events.Stop()
		e.all.Wait()
	})
	return e
}

// isNew reports whether the pod has an address that the engine has not seen.
func (e *engine) isNew(pod *corev1.Pod) bool {
	key := string(pod.UID) + pod.Status.PodIP
	e.mu.Lock()
	defer e.mu.Unlock()
	if pod.Status.PodIP == "" || !slices.Contains(e.apps, pod.Labels["app"]) || e.known[key] {
		return false
	}
	e.known[key] = true
	return true
}

func (e *engine) program(ctx context.Context, pod *corev1.Pod) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(programming):
	}
	e.mu.Lock()
	node := e.nodes[pod.Spec.NodeName]
	e.mu.Unlock()
	if node == nil {
		return fmt.Errorf("no engine runs on its node, %s", pod.Spec.NodeName)
	}
	if _, err := node.Try(ctx, "nft", "add element inet engine programmed { "+pod.Status.PodIP+" }"); err != nil {
		return err
	}
	return setPodCondition(ctx, e.lab, pod, programmed, time.Now())
}

// guard drops traffic to and from pods of a node that are not programmed. Probes of the kubelet come from the
// node itself, and pass: as with real engines.
func (e *engine) guard(t *testing.T, n *lab.Node) {
	t.Helper()
	n.Run(t, "nft", "add table inet engine; add set inet engine programmed { type ipv4_addr; }; add counter inet engine dropped; "+
		"add chain inet engine forward { type filter hook forward priority 0; }; "+
		"add rule inet engine forward oifname cni0 tcp dport 80 ip daddr != @programmed counter name dropped drop; "+
		"add rule inet engine forward iifname cni0 tcp dport 80 ip saddr != @programmed reject")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.nodes[n.Name] = n
}

var packets = regexp.MustCompile(`packets (\d+)`)

// dropped returns the number of packets to unprogrammed pods that the engine dropped so far.
func (e *engine) dropped(t *testing.T) int {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	total := 0
	for _, n := range e.nodes {
		said := n.Run(t, "nft", "list counter inet engine dropped")
		found := packets.FindStringSubmatch(said)
		if found == nil {
			t.Fatalf("nft printed %q", said)
		}
		count, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		total += count
	}
	return total
}

// calls are requests of a client, one after the other, each on its own connection.
type calls struct {
	mu       sync.Mutex
	answered map[string]int // by the pod that answered
	failed   []string
	stop     func() error
}

// call calls an address again and again from the network of a pod, beginning with the first call
// that is answered. A connection that takes over a second has failed.
func call(t *testing.T, l *lab.Lab, from *corev1.Pod, address string) *calls {
	t.Helper()
	found := pids(l.Node(from.Spec.NodeName), from.UID, "/pause")
	if len(found) == 0 {
		t.Fatalf("%s has no process", from.Name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &calls{answered: map[string]int{}}
	ended := make(chan error, 1)
	c.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = c.stop() }) // tests that need the error have called it before
	go func() { ended <- inside(found[0], func() { c.repeat(ctx, address) }) }()
	return c
}

// inside runs a function in the network namespace of a process.
func inside(pid int, do func()) error {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer ns.Close() //nolint:errcheck // only entered
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network of a pod: %w", err)
	}
	do()
	return nil
}

func (c *calls) repeat(ctx context.Context, address string) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for begun := false; ; {
		who, err := fetch(ctx, address)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		switch {
		case err == nil:
			begun = true
			c.answered[who]++
		case begun:
			c.failed = append(c.failed, err.Error())
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// fetch asks a server of a workload for its page, which is the name of its pod. TCP sends a lost packet again
// after a second: one that a busy machine loses does not fail the call. After the
// connection, the answer has no deadline of a second.
func fetch(ctx context.Context, address string) (string, error) {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // all was read
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return "", err
	}
	page, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	head, body, _ := strings.Cut(string(page), "\r\n\r\n")
	if !strings.Contains(head, " 200 ") {
		return "", fmt.Errorf("the answer is %q", head)
	}
	return strings.TrimSpace(body), nil
}

// sum returns the number of answered calls, the failures, and the pods that answered.
func (c *calls) sum() (answered int, failed, by []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for who, n := range c.answered {
		answered += n
		by = append(by, who)
	}
	return answered, slices.Clone(c.failed), by
}
