package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// A leader is stopped for longer than its lease. When it continues, another manager leads and counts held nodes without
// it. The first one must not write.
func TestAPausedLeaderKeepsMaxUnavailable(t *testing.T) {
	t.Parallel()
	const fleet, limit = 30, 3
	c := testenv.StartCluster(t)
	name := testenv.NameOf(t)
	node := func(i int) string { return fmt.Sprintf("%s-%02d", name, i) }
	for i := range fleet {
		c.CreateNode(t, testenv.Node(node(i), testenv.Pool(name)), corev1.ConditionTrue)
	}
	time.Sleep(1100 * time.Millisecond) // creation times have whole seconds, and the nodes must be older
	rule := testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(limit)) })
	c.Create(t, rule)
	away := watchAway(t, c, rule, func(n string) bool { return strings.HasPrefix(n, name+"-") })
	flap(t, func(ctx context.Context) {
		_ = c.TrySetCondition(ctx, node(rand.IntN(fleet)), testenv.Condition, []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[rand.IntN(2)])
	})

	leader := c.StartProcess(t, testenv.ManagerUser, elect...)
	await := func(what string, holds func(holder string) bool) string {
		t.Helper()
		var lease coordinationv1.Lease
		testenv.Eventually(t, what, func(ctx context.Context) error {
			if err := c.Client.Get(ctx, client.ObjectKey{Namespace: testenv.ManagerNamespace, Name: v1alpha1.LeaseName}, &lease); err != nil {
				return err
			}
			if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); !holds(holder) {
				return fmt.Errorf("%q holds the lease", holder)
			}
			return nil
		})
		return *lease.Spec.HolderIdentity
	}
	holder := await("a leader", func(h string) bool { return h != "" })
	for range sized(2, 1) {
		next := c.StartProcess(t, testenv.SecondManagerUser, elect...)
		testenv.Eventually(t, "a held node", func(context.Context) error {
			if len(away.now()) == 0 {
				return errors.New("no node is held")
			}
			return nil
		})
		leader.Signal(syscall.SIGSTOP)
		holder = await("another leader", func(h string) bool { return h != "" && h != holder })
		took := away.taken() // the new leader waits a minute: requests of the old one may still be in flight
		testenv.Eventually(t, "the new leader to hold a node", func(context.Context) error {
			if away.taken() == took {
				return errors.New("no node yet")
			}
			return nil
		})
		leader.Signal(syscall.SIGCONT)
		select {
		case <-leader.Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the manager that lost the lease still runs")
		}
		leader = next
	}
	if most := away.mostEver(); most != limit {
		t.Errorf("%d nodes in use were held at the same time, want %d", most, limit)
	}
}

// flap calls do repeatedly, in several goroutines, until the test ends.
func flap(t *testing.T, do func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				do(ctx)
				pause(ctx, 100*time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}
