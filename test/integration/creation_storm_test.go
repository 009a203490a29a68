package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

const (
	// podsPerNode is the number of pods that fill a node: until the last node is released, pods wait for it.
	podsPerNode = 4
	// reportAfter is the time from the creation of a node until its network is reported.
	reportAfter = 3 * time.Second
)

// With the real scheduler, 800 pods wait, and 200 nodes join in bursts while the manager is killed repeatedly and the API
// server is restarted twice. No pod is bound to a node before the rule releases the node, and all pods are bound at the
// end.
//
// With -short, and without the policies, 20 nodes join in four bursts while 80 pods wait. The test sets Ready
// and removes the not-ready taint; controller manager and KWOK do not run.
func TestNoPodIsEarlyWhileManyNodesJoin(t *testing.T) {
	t.Parallel()
	t.Run("with the policies no pod is early", func(t *testing.T) {
		s, early := runJoinStorm(t, true, testing.Short())
		if len(early) > 0 {
			t.Errorf("%d early pods, e.g. %s", len(early), early[0])
		}
		if s.witness.createdHeld != s.nodes {
			t.Errorf("%d of %d nodes were created without the taint", s.nodes-s.witness.createdHeld, s.nodes)
		}
	})
	t.Run("without the policies some pods are early: this test can fail", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-all runs it")
		}
		if _, early := runJoinStorm(t, false, true); len(early) == 0 {
			t.Error("no early pod: the result of this test does not depend on the policies")
		}
	})
}

// joinStorm is a fleet of nodes that join while the manager and the API server fail.
type joinStorm struct {
	c       *testenv.Cluster
	t       *testing.T
	rule    *v1alpha1.NodeReadinessRule
	witness *witness
	manager *testenv.Process

	small               bool
	nodes, pods, bursts int
	kills, restarts     int
}

// runJoinStorm returns the pods that were bound before their node was released.
func runJoinStorm(t *testing.T, policies, small bool) (s *joinStorm, early []string) {
	t.Helper()
	s = newJoinStorm(t, policies, small)
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var reports sync.WaitGroup
	reports.Go(func() { s.report(ctx) })
	for burst := range s.bursts {
		s.burst(burst)
	}
	// The test does not require that pods run: on a busy machine KWOK ignores pods that were bound to a node before KWOK
	// received the node.
	s.witness.eventually(t, "all nodes released and all pods bound", func(w *witness) bool {
		return len(w.released) == s.nodes && len(w.bound) == s.pods
	})
	cancel()
	reports.Wait()
	early = s.witness.verdict()
	t.Logf("%d nodes (%d held at creation), %d pods, %d early; manager killed %d times, API server %d times; %.0f s",
		s.nodes, s.witness.createdHeld, s.pods, len(early), s.kills, s.restarts, time.Since(start).Seconds())
	return s, early
}

// newJoinStorm returns when all pods wait.
func newJoinStorm(t *testing.T, policies, small bool) *joinStorm {
	t.Helper()
	c := testenv.StartCluster(t)
	settled := testenv.Enforced
	if policies {
		settled = covered
		if err := c.InstallPolicies(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := &joinStorm{c: c, t: t, rule: testenv.Rule("storm", testenv.BootstrapOnly), nodes: 200, bursts: 10}
	components := []func(context.Context) error{c.StartScheduler, c.StartControllerManager, c.StartKWOK}
	if s.small = small; small {
		s.nodes, s.bursts, components = 20, 4, components[:1]
		c.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	}
	s.pods = podsPerNode * s.nodes
	c.Create(t, s.rule)
	s.manager = c.StartProcess(t, testenv.ManagerUser)
	s.witness = newWitness(t, c, s.rule, s.nodes)
	for _, start := range components {
		if err := start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.createPods()
	s.witness.eventually(t, "all pods waiting for a node", func(w *witness) bool { return len(w.waiting) == s.pods })
	c.EventuallyRule(t, s.rule.Name, "settled", settled)
	return s
}

func (s *joinStorm) createPods() {
	s.t.Helper()
	const creators = 10
	var wait sync.WaitGroup
	for creator := range creators {
		wait.Go(func() {
			for i := creator; i < s.pods; i += creators {
				err := s.c.Client.Create(s.t.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("storm-%04d", i)},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
				})
				if err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// burst creates nodes, and returns after the time in which the scheduler could bind pods to them. In every other burst no
// manager runs, and in two the API server has just started.
func (s *joinStorm) burst(burst int) {
	s.t.Helper()
	alone, restart := burst%2 == 1, burst%4 == 3
	if alone {
		s.manager.Kill()
		s.kills++
	}
	if restart {
		if err := s.c.KillAPIServer(); err != nil {
			s.t.Fatal(err)
		}
		s.restarts++
	}
	size := s.nodes / s.bursts
	var joins sync.WaitGroup
	for i := range size {
		joins.Go(func() { s.join(s.t.Context(), fmt.Sprintf("storm-%03d", burst*size+i)) })
	}
	if restart {
		if err := s.c.StartAPIServer(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	joins.Wait()
	s.witness.eventually(s.t, "nodes that could take pods", func(w *witness) bool { return len(w.open) == (burst+1)*size })
	pause(s.t.Context(), reportAfter/2) // time for the scheduler
	if alone {
		s.manager = s.c.StartProcess(s.t, testenv.ManagerUser)
	}
}

// join creates a node that the rule selects, and retries until it exists.
func (s *joinStorm) join(ctx context.Context, name string) {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	untilDone(ctx, func() error {
		err := s.c.Client.Create(ctx, testenv.Node(name, testenv.Pool(s.rule.Name), func(n *corev1.Node) {
			n.Status.Capacity, n.Status.Allocatable = room, room
			if s.small {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			}
		}))
		if apierrors.IsAlreadyExists(err) {
			return nil // only the response was lost
		}
		return err
	})
	if s.small {
		untilDone(ctx, func() error { return s.removeNotReady(ctx, name) })
	}
}

// removeNotReady removes the not-ready taint of new nodes, as the controller manager does for Ready nodes.
func (s *joinStorm) removeNotReady(ctx context.Context, name string) error {
	var node corev1.Node
	if err := s.c.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	return s.c.Client.Update(ctx, &node)
}

// report sets the network condition of each node, reportAfter after its creation.
func (s *joinStorm) report(ctx context.Context) {
	var reports sync.WaitGroup
	defer reports.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case node := <-s.witness.opened:
			reports.Go(func() {
				pause(ctx, reportAfter)
				untilDone(ctx, func() error { return s.c.TrySetCondition(ctx, node, testenv.Condition, corev1.ConditionTrue) })
			})
		}
	}
}

// untilDone repeats a request that fails while the API server is down.
func untilDone(ctx context.Context, try func() error) {
	for ctx.Err() == nil && try() != nil {
		pause(ctx, 50*time.Millisecond)
	}
}
