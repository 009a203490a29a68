package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// No manager runs, and an API server has just started. Nodes try to join before it listens, and all nodes are created
// with the taint, the first one included.
func TestFirstNodeAfterAPIServerStartIsTainted(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.NeedMutatingPolicies(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	manager := c.StartProcess(t, testenv.ManagerUser)
	rule := testenv.Rule("start")
	for i := range 20 { // more rules, so that the policy takes time to compile
		c.Create(t, testenv.Rule(fmt.Sprintf("start-%02d", i)))
	}
	createCovered(t, c, rule)
	manager.Kill()
	for round := range sized(4, 1) {
		joined := joinAtStart(t, c, rule, fmt.Sprintf("start-%d", round))
		t.Logf("round %d: %d nodes; the first %v after the start, ready after %v", round, joined.nodes, joined.first.Round(time.Millisecond), joined.ready.Round(time.Millisecond))
	}
	var nodes corev1.NodeList
	if err := c.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items { // also nodes whose response was lost
		if got := holdOf(&nodes.Items[i], rule); got != "taint created" {
			t.Errorf("%s was created with %q", nodes.Items[i].Name, got)
		}
	}
}

// arrivals has the results of nodes that tried to join from before the API server listened.
type arrivals struct {
	nodes        int
	first, ready time.Duration
}

// joinAtStart kills the API server and starts it again while nodes continuously try to join.
func joinAtStart(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, prefix string) arrivals {
	t.Helper()
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var mu sync.Mutex
	var a arrivals
	for joiner := range 4 {
		wait.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				node := testenv.Node(fmt.Sprintf("%s-%d-%06d", prefix, joiner, i), testenv.Pool(rule.Name))
				if c.Client.Create(ctx, node) != nil {
					pause(ctx, time.Millisecond) // the API server does not listen yet
					continue
				}
				mu.Lock()
				if a.nodes++; a.nodes == 1 {
					a.first = time.Since(start)
				}
				mu.Unlock()
				if got := holdOf(node, rule); got != "taint created" {
					t.Errorf("%s, %v after the start, is created with %q", node.Name, time.Since(start), got)
				}
			}
		})
	}
	err := c.StartAPIServer(t.Context())
	a.ready = time.Since(start)
	pause(ctx, time.Second)
	stop()
	wait.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if a.nodes == 0 {
		t.Error("no node joined")
	}
	return a
}

// Rules are created and deleted, so the policy is written continuously, while API server and manager are killed at random
// moments. While TaintedAtCreation of a rule is True and the rule is not deleted, all nodes are created with the taint.
// With -short each is killed once.
func TestNewNodesAreTaintedAtCreationDespiteCrashes(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	manager := c.StartProcess(t, testenv.ManagerUser)
	h := &hubbub{t: t, c: c, covered: map[*v1alpha1.NodeReadinessRule]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for i := range 5 {
		wait.Go(func() { h.comeAndGo(ctx, fmt.Sprintf("hubbub-%d", i)) })
	}
	for i := range 2 {
		wait.Go(func() { h.join(ctx, fmt.Sprintf("hubbub-%d", i)) })
	}
	for range sized(4, 1) {
		pause(ctx, time.Duration(rand.IntN(8000))*time.Millisecond)
		restart(t, c)
		pause(ctx, time.Duration(rand.IntN(8000))*time.Millisecond)
		manager.Kill()
		manager = c.StartProcess(t, testenv.ManagerUser)
	}
	testenv.Eventually(t, "enough rules and nodes", func(context.Context) error {
		if h.turns.Load() < 10 || h.checks.Load() < 500 {
			return errors.New("not yet")
		}
		return nil
	})
	stop()
	wait.Wait()
	t.Logf("%d rules came and went; %d creations of covered nodes", h.turns.Load(), h.checks.Load())
}

// hubbub creates and deletes rules and nodes concurrently.
type hubbub struct {
	t             *testing.T
	c             *testenv.Cluster
	turns, checks atomic.Int64

	mu      sync.Mutex
	covered map[*v1alpha1.NodeReadinessRule]bool
}

// promised returns the rules whose TaintedAtCreation was True and that are not deleted.
func (h *hubbub) promised() map[*v1alpha1.NodeReadinessRule]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.covered)
}

func (h *hubbub) promise(rule *v1alpha1.NodeReadinessRule, holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holds {
		h.covered[rule] = true
	} else {
		delete(h.covered, rule)
	}
}

// comeAndGo repeatedly creates a rule, and deletes it shortly after it is covered.
func (h *hubbub) comeAndGo(ctx context.Context, name string) {
	for ; ctx.Err() == nil; h.turns.Add(1) {
		rule := testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"pool": "hubbub"} // each rule selects all nodes
		})
		untilDone(ctx, func() error { return h.c.Client.Create(ctx, rule) })
		untilDone(ctx, func() error {
			if err := h.c.Client.Get(ctx, client.ObjectKeyFromObject(rule), rule); err != nil || covered(rule) {
				return err
			}
			return errors.New("not covered")
		})
		h.promise(rule, true)
		pause(ctx, time.Duration(rand.IntN(4000))*time.Millisecond)
		h.promise(rule, false)
		untilDone(ctx, func() error { return h.c.Client.Delete(ctx, rule) })
		untilDone(ctx, func() error {
			if !apierrors.IsNotFound(h.c.Client.Get(ctx, client.ObjectKeyFromObject(rule), rule.DeepCopy())) {
				return errors.New("not gone")
			}
			return nil
		})
	}
}

// join creates nodes one after the other, and checks that each response has the taints of the promised rules.
func (h *hubbub) join(ctx context.Context, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		node := testenv.Node(fmt.Sprintf("%s-%06d", prefix, i), testenv.Pool("hubbub"))
		before := h.promised()
		if h.c.Client.Create(ctx, node) != nil {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		after := h.promised()
		for rule := range before {
			if !after[rule] {
				continue
			}
			h.checks.Add(1)
			if got := holdOf(node, rule); got != "taint created" {
				h.t.Errorf("%s is covered, and %s is created with %q", rule.Name, node.Name, got)
			}
		}
		_ = h.c.Client.Delete(ctx, node) // a node that stays does no harm
		pause(ctx, 5*time.Millisecond)
	}
}
