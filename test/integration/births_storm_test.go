package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testkit"
)

const (
	joinNodes  = 500
	joinBursts = 10
	burstSize  = joinNodes / joinBursts
	// joinPods fill all nodes: until the last node is released, there are pods that want it.
	joinPods = 4 * joinNodes
	// reportAfter is how long a node could take pods before its network is up.
	reportAfter = 3 * time.Second
)

// The real scheduler, 2,000 waiting pods, and nodes that join in bursts while the manager is
// killed again and again and the API server is restarted twice: no pod is bound to a node
// before the rule releases it, and all have a node in the end.
func TestNoPodIsEarlyInAStormOfJoins(t *testing.T) {
	t.Parallel()
	t.Run("with the policies no pod is early", func(t *testing.T) {
		early, bornHeld := runJoinStorm(t, true)
		if len(early) > 0 {
			t.Errorf("%d early pods, e.g. %s", len(early), early[0])
		}
		if bornHeld != joinNodes {
			t.Errorf("%d of %d nodes were born without the taint", joinNodes-bornHeld, joinNodes)
		}
	})
	t.Run("without them some are, so this test can fail", func(t *testing.T) {
		if early, _ := runJoinStorm(t, false); len(early) == 0 {
			t.Error("no early pod: whatever kept them away, it was not the policies")
		}
	})
}

// joinStorm is a fleet that joins while all that could keep pods away from it breaks.
type joinStorm struct {
	c       *testkit.Cluster
	t       *testing.T
	rule    *v1alpha1.NodeReadinessRule
	witness *witness
	manager *testkit.Process

	kills, restarts int
}

// runJoinStorm returns the pods that were bound before their node was released, and how many
// nodes carried the taint from the first.
func runJoinStorm(t *testing.T, policies bool) (early []string, bornHeld int) {
	t.Helper()
	s := newJoinStorm(t, policies)
	start := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var reports sync.WaitGroup
	reports.Go(func() { s.report(ctx) })
	for burst := range joinBursts {
		s.burst(burst)
	}
	// That they run is not asked for: on a busy machine KWOK forgets pods that were bound to a
	// node before it knew the node.
	s.witness.eventually(t, "all nodes released and all pods bound", func(w *witness) bool {
		return len(w.released) == joinNodes && len(w.bound) == joinPods
	})
	cancel()
	reports.Wait()
	early, bornHeld = s.witness.verdict()
	t.Logf("%d nodes (%d held at birth), %d pods, %d early; manager killed %d times, API server %d times; %.0f s",
		joinNodes, bornHeld, joinPods, len(early), s.kills, s.restarts, time.Since(start).Seconds())
	return early, bornHeld
}

// newJoinStorm returns when all pods wait, and nodes may join.
func newJoinStorm(t *testing.T, policies bool) *joinStorm {
	t.Helper()
	c := testkit.StartCluster(t)
	settled := testkit.Enforced
	if policies {
		settled = covered
		if err := c.InstallPolicies(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := &joinStorm{c: c, t: t, rule: testkit.Rule("storm", testkit.BootstrapOnly)}
	c.Create(t, s.rule)
	s.manager = c.StartProcess(t, testkit.ManagerUser)
	s.witness = newWitness(t, c, s.rule)
	for _, start := range []func(context.Context) error{c.StartControllerManager, c.StartScheduler, c.StartKWOK} {
		if err := start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.createPods()
	s.witness.eventually(t, "all pods waiting for a node", func(w *witness) bool { return len(w.waiting) == joinPods })
	c.EventuallyRule(t, s.rule.Name, "settled", settled)
	return s
}

func (s *joinStorm) createPods() {
	s.t.Helper()
	const creators = 10
	var wait sync.WaitGroup
	for creator := range creators {
		wait.Go(func() {
			for i := creator; i < joinPods; i += creators {
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

// burst lets nodes join, and returns when they had their chance to get pods. Every other
// time no manager is there to hold them, and twice the API server has just been started.
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
	var joins sync.WaitGroup
	for i := range burstSize {
		joins.Go(func() { s.join(s.t.Context(), fmt.Sprintf("storm-%03d", burst*burstSize+i)) })
	}
	if restart {
		if err := s.c.StartAPIServer(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	joins.Wait()
	s.witness.eventually(s.t, "nodes that could take pods", func(w *witness) bool { return len(w.open) == (burst+1)*burstSize })
	pause(s.t.Context(), reportAfter/2) // the scheduler's chance
	if alone {
		s.manager = s.c.StartProcess(s.t, testkit.ManagerUser)
	}
}

// join creates a node that is selected at birth, and tries until it is there.
func (s *joinStorm) join(ctx context.Context, name string) {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   *resource.NewQuantity(joinPods/joinNodes, resource.DecimalSI),
	}
	untilDone(ctx, func() error {
		err := s.c.Client.Create(ctx, testkit.Node(name, testkit.Pool(s.rule.Name), func(n *corev1.Node) {
			n.Status.Capacity, n.Status.Allocatable = room, room
		}))
		if apierrors.IsAlreadyExists(err) {
			return nil // the answer was lost, not the request
		}
		return err
	})
}

// report says of each node that its network is up, a while after it could take pods.
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
				untilDone(ctx, func() error { return s.c.TrySetCondition(ctx, node, testkit.Condition, corev1.ConditionTrue) })
			})
		}
	}
}

// untilDone repeats what fails while the API server is away.
func untilDone(ctx context.Context, try func() error) {
	for ctx.Err() == nil && try() != nil {
		pause(ctx, 50*time.Millisecond)
	}
}
