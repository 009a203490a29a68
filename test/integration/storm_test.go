package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

const (
	stormNodes   = 50
	stormWriters = 5
	stormTime    = 30 * time.Second
	// stormPause leaves CPU time for the manager and the API server.
	stormPause = 10 * time.Millisecond
)

// storm runs many writers on the same nodes. Each foreign writer owns one taint, one label and one annotation on every
// node, and checks before each write that its last write is still there. Other writers change the condition, and move
// nodes into and out of the rule's pool.
type storm struct {
	c    *testenv.Cluster
	t    *testing.T
	rule *v1alpha1.NodeReadinessRule

	mu     sync.Mutex
	lost   []string
	writes int
}

func newStorm(t *testing.T, c *testenv.Cluster) *storm {
	s := &storm{c: c, t: t, rule: testenv.Rule("storm")}
	c.Create(t, s.rule)
	for i := range stormNodes {
		c.Create(t, testenv.Node(stormNode(i), testenv.Pool(s.rule.Name)))
	}
	return s
}

func stormNode(i int) string { return fmt.Sprintf("storm-%02d", i) }

// run runs all writers until the context ends.
func (s *storm) run(ctx context.Context) {
	var wait sync.WaitGroup
	for i := range stormWriters {
		wait.Go(func() { s.write(ctx, i) })
	}
	wait.Go(func() { s.flip(ctx) })
	wait.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Logf("%d foreign writes", s.writes)
	if s.writes < stormNodes {
		s.t.Errorf("only %d foreign writes, too few for this test", s.writes)
	}
	for _, lost := range s.lost {
		s.t.Error(lost)
	}
}

// write adds and removes what one writer owns, with optimistic locking.
func (s *storm) write(ctx context.Context, writer int) {
	wrote := map[string]bool{}
	key := fmt.Sprintf("example.com/writer-%d", writer)
	for ; ctx.Err() == nil; pause(ctx, stormPause) {
		name := stormNode(rand.IntN(stormNodes))
		var node corev1.Node
		if s.c.Client.Get(ctx, types.NamespacedName{Name: name}, &node) != nil {
			continue // the API server is down, or the context has ended
		}
		s.inspect(&node, key, wrote)
		present := !bears(&node, key)
		put(&node, key, present)
		if writer == 0 && rand.IntN(4) == 0 {
			node.Labels["pool"] = []string{s.rule.Name, "elsewhere"}[rand.IntN(2)]
		}
		switch err := s.c.Client.Update(ctx, &node); {
		case err == nil:
			wrote[name] = present
			s.mu.Lock()
			s.writes++
			s.mu.Unlock()
		case !apierrors.IsConflict(err):
			delete(wrote, name) // the write may have succeeded
		}
	}
}

// inspect records a loss if the node does not have what the writer wrote last.
func (s *storm) inspect(node *corev1.Node, key string, wrote map[string]bool) {
	_, label := node.Labels[key]
	_, annotation := node.Annotations[key]
	want, known := wrote[node.Name]
	if known && (bears(node, key) != want || label != want || annotation != want) {
		s.mu.Lock()
		s.lost = append(s.lost, fmt.Sprintf("%s wrote %v on %s, found taint %v, label %v, annotation %v", key, want, node.Name, bears(node, key), label, annotation))
		s.mu.Unlock()
	}
}

func bears(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

func put(node *corev1.Node, key string, present bool) {
	if !present {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		delete(node.Labels, key)
		delete(node.Annotations, key)
		return
	}
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectPreferNoSchedule})
	node.Labels[key] = "x"
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = "x"
}

// flip changes the condition of random nodes.
func (s *storm) flip(ctx context.Context) {
	statuses := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	for ; ctx.Err() == nil; pause(ctx, stormPause) {
		_ = s.c.TrySetCondition(ctx, stormNode(rand.IntN(stormNodes)), testenv.Condition, statuses[rand.IntN(len(statuses))])
	}
}

// awaitEnforced waits until every node is as the rule requires, and the rule reports Enforced.
func (s *storm) awaitEnforced() {
	s.t.Helper()
	for i := range stormNodes {
		s.c.EventuallyNode(s.t, stormNode(i), "as the rule requires", func(n *corev1.Node) bool {
			if wantHeld(n, s.rule.Name) {
				return held(s.rule)(n)
			}
			return free(s.rule)(n)
		})
	}
	s.c.EventuallyRule(s.t, s.rule.Name, "enforced", testenv.Enforced)
}

// wantHeld evaluates the rule without code of the manager.
func wantHeld(node *corev1.Node, pool string) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == testenv.Condition && condition.Status == corev1.ConditionTrue {
			return false
		}
	}
	return node.Labels["pool"] == pool
}

// silence waits until the users have not written for 3 s: no write is repeated indefinitely.
func silence(t *testing.T, c *testenv.Cluster, users ...string) {
	t.Helper()
	const quiet = 3 * time.Second
	last, since := -1, time.Now()
	testenv.Eventually(t, "the end of all writes", func(context.Context) error {
		count := 0
		for _, user := range users {
			for _, request := range c.Requests(t, user) {
				if request.IsWrite() && request.Resource != "leases" {
					count++
				}
			}
		}
		if count != last {
			last, since = count, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%d writes, the last %v ago", count, time.Since(since))
		}
		return nil
	})
}

func TestNothingOfForeignWritersIsLost(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	_, stop, err := c.RunManager()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	s := newStorm(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), stormTime/time.Duration(sized(1, 6)))
	defer cancel()
	s.run(ctx)
	s.awaitEnforced()
	silence(t, c, testenv.ManagerUser)
}

// The test kills the manager thirty times at random moments, and the API server once. The next manager finishes what
// was interrupted. With -short the test kills the manager five times.
func TestCrashesAtAnyMomentAreRepaired(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	s := newStorm(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { s.run(ctx) })
	crashes := sized(30, 5)
	for i := range crashes {
		p := c.StartProcess(t, testenv.ManagerUser)
		wrote := patchCount(t, c)
		testenv.Eventually(t, "the manager to write", func(context.Context) error {
			if patchCount(t, c) == wrote {
				return fmt.Errorf("no PATCH yet:\n%s", p.Log())
			}
			return nil
		})
		pause(ctx, rand.N(500*time.Millisecond)) // the moment of the crash
		if i == crashes/2 {
			if err := c.KillAPIServer(); err != nil {
				t.Error(err)
			}
			pause(ctx, rand.N(time.Second))
			if err := c.StartAPIServer(ctx); err != nil {
				t.Fatal(err)
			}
		}
		p.Kill()
	}
	c.StartProcess(t, testenv.ManagerUser)
	cancel()
	wait.Wait()
	s.awaitEnforced()
	silence(t, c, testenv.ManagerUser)
}

func patchCount(t *testing.T, c *testenv.Cluster) int {
	count := 0
	for _, request := range c.Requests(t, testenv.ManagerUser) {
		if request.Verb == "patch" && request.Resource == "nodes" && request.Code == 200 {
			count++
		}
	}
	return count
}

// pause waits. Only tests whose input is time use it, and not in place of a wait for a condition.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
