package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/testenv"
)

// nodeWorkers and ruleWorkers limit requests about nodes and rules. At most 4 other requests are in flight: one for each
// of the two policies, one for PodReadinessRules and one for events.
var (
	nodeWorkers = manager.NewOptions().NodeWorkers
	otherMost   = manager.NewOptions().RuleWorkers + 4
)

// crowd is a fleet of nodes that rules select, with a manager that uses the API server through a proxy.
type crowd struct {
	*testenv.Cluster
	proxy   *testenv.Proxy
	metrics *prometheus.Registry
	rules   []*v1alpha1.NodeReadinessRule
	nodes   int
}

// newCrowd creates the rules and the nodes, all released, and waits until the manager writes nothing.
func newCrowd(t *testing.T, rules, nodes int) *crowd {
	t.Helper()
	c := &crowd{Cluster: testenv.StartCluster(t), nodes: nodes}
	for i := range rules {
		rule := testenv.Rule(fmt.Sprintf("rule-%02d", i), func(r *v1alpha1.NodeReadinessRule) {
			r.Spec.NodeSelector = testenv.Rule("crowd").Spec.NodeSelector
		})
		if err := c.Client.Create(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		c.rules = append(c.rules, rule)
	}
	for i := range nodes {
		node := testenv.Node(crowdNode(i), testenv.Pool("crowd"), func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: testenv.Condition, Status: corev1.ConditionTrue}}
		})
		if err := c.Client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	c.run(t)
	c.eventuallyHeld(t, 0)
	return c
}

func crowdNode(i int) string { return fmt.Sprintf("crowd-%03d", i) }

func (c *crowd) run(t *testing.T) {
	t.Helper()
	config, err := c.ControlPlane.Config(testenv.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	if c.proxy, err = testenv.StartProxy(config); err != nil {
		t.Fatal(err)
	}
	var stop func() error
	c.metrics, stop = testenv.RunManager(c.proxy.Config())
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		c.proxy.Close()
	})
}

// flip sets the condition of all nodes to False, without the proxy.
func (c *crowd) flip(t *testing.T) {
	t.Helper()
	for i := range c.nodes {
		c.SetCondition(t, crowdNode(i), testenv.Condition, corev1.ConditionFalse)
	}
}

// eventuallyHeld waits until each rule reports Enforced with this number of held nodes.
func (c *crowd) eventuallyHeld(t *testing.T, want int) {
	t.Helper()
	for _, rule := range c.rules {
		got := c.EventuallyRule(t, rule.Name, fmt.Sprintf("%d held", want), func(r *v1alpha1.NodeReadinessRule) bool {
			return testenv.Enforced(r) && int(r.Status.Summary.Selected) == c.nodes && int(r.Status.Summary.Held) == want
		})
		if len(got.Status.FailedNodes) > 0 {
			t.Errorf("%s reports %d failed nodes, first %v", rule.Name, len(got.Status.FailedNodes), got.Status.FailedNodes[0])
		}
	}
}

// wantPatchedOnce checks that each node, from this one on, was patched once. It returns the number of PATCHes per node
// that reached the API server.
func (c *crowd) wantPatchedOnce(t *testing.T, from int) map[string]int {
	t.Helper()
	patches := map[string]int{}
	for _, request := range c.Requests(t, testenv.ManagerUser) {
		if request.Verb == "patch" && request.Resource == "nodes" {
			patches[request.Name]++
		}
	}
	for i := from; i < c.nodes; i++ {
		if got := patches[crowdNode(i)]; got != 1 {
			t.Errorf("%s was patched %d times", crowdNode(i), got)
		}
	}
	return patches
}

// lessNeeded reports whether a request is not about a node.
func lessNeeded(a testenv.Arrival) bool {
	return a.IsWork() && (a.Resource != "nodes" || a.Name == "")
}

func isEvent(a testenv.Arrival) bool { return a.Resource == "events" }

// The statuses of twenty rules and two hundred events are to be written while two hundred nodes wait to be held.
func TestRequestsToASlowAPIServerAreLimited(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 20, 200)
	c.proxy.Set(testenv.Fault{Delay: 500 * time.Millisecond})
	c.flip(t)
	for i := range c.nodes {
		c.EventuallyNode(t, crowdNode(i), "held by all", func(n *corev1.Node) bool { return len(n.Annotations) == len(c.rules) })
	}
	for what, tc := range map[string]struct {
		of   func(testenv.Arrival) bool
		most int
	}{
		"requests":                           {testenv.Arrival.IsWork, nodeWorkers + otherMost},
		"requests that are not about a node": {lessNeeded, otherMost},
		"events":                             {isEvent, 1},
	} {
		got := c.proxy.MostUnderWay(tc.of)
		if got > tc.most {
			t.Errorf("%d %s were in flight at one time, want at most %d", got, what, tc.most)
		}
		t.Logf("%s: %d under way of %d", what, got, tc.most)
	}
	if got := c.proxy.MostUnderWay(testenv.Arrival.IsWork); got < nodeWorkers {
		t.Errorf("only %d requests were in flight at one time, too few for this test", got)
	}
	c.proxy.Set(testenv.Fault{})
	c.eventuallyHeld(t, c.nodes)
	c.wantPatchedOnce(t, 0)
	t.Logf("requests: %v", c.proxy.Counts())
}

// The API server rejects all requests for ten seconds, with Retry-After: 1.
func TestManagerBacksOffWhenTheAPIServerThrottles(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 3, 100)
	const throttled = 10 * time.Second
	before, start := len(c.proxy.Arrivals()), time.Now()
	c.proxy.Set(testenv.Fault{Code: 429, RetryAfter: 1})
	c.flip(t)
	pause(t.Context(), throttled-time.Since(start))
	c.proxy.Set(testenv.Fault{})
	took, came := time.Since(start), 0
	for _, arrival := range c.proxy.Arrivals()[before:] {
		if arrival.IsWork() && arrival.At.Before(start.Add(took)) {
			came++
		}
	}
	if bound := refusedAtMost(took); came > bound {
		t.Errorf("%d requests in %v, want at most %d", came, took, bound)
	} else {
		t.Logf("%d requests in %v, of %d at most", came, took, bound)
	}
	if came == 0 {
		t.Error("no request was rejected")
	}
	c.eventuallyHeld(t, c.nodes)
	c.wantPatchedOnce(t, 0)
	families, err := c.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "node_readiness_failures_total" {
			t.Errorf("a throttled write is counted as failed: %v", family.GetMetric())
		}
	}
}

// refusedAtMost returns the maximum number of rejected requests: each request in flight is sent again after a second.
func refusedAtMost(took time.Duration) int {
	return (nodeWorkers + otherMost) * (int(took/time.Second) + 1)
}

// One node flips ten times per second for twenty seconds. Meanwhile all other nodes flip once, and are held before the
// first one stops.
func TestAFlappingNodeDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, 101)
	flapper := crowdNode(0)
	enough, flipped := make(chan struct{}), make(chan int, 1)
	go func() { flipped <- c.flap(t, flapper, enough) }()
	for i := 1; i < c.nodes; i++ {
		c.SetCondition(t, crowdNode(i), testenv.Condition, corev1.ConditionFalse)
	}
	for i := 1; i < c.nodes; i++ {
		c.EventuallyNode(t, crowdNode(i), "held", held(c.rules[0]))
	}
	close(enough)
	flips := <-flipped
	c.EventuallyNode(t, flapper, "held", held(c.rules[0]))
	c.eventuallyHeld(t, c.nodes)
	silence(t, c.Cluster, testenv.ManagerUser)

	patches := c.wantPatchedOnce(t, 1)
	if got := patches[flapper]; got > flips || got == 0 {
		t.Errorf("%d PATCHes of a node that flipped %d times", got, flips)
	}
	t.Logf("%d flips, %d PATCHes", flips, patches[flapper])
}

// flap changes the condition ten times per second for at least twenty seconds, and ends with False. It returns the
// number of changes.
func (c *crowd) flap(t *testing.T, node string, enough <-chan struct{}) int {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	flips, over := 0, false
	for ; flips < 200 || !over || flips%2 == 0; flips++ {
		select {
		case <-enough:
			over = true
		case <-t.Context().Done():
			return flips
		default:
		}
		<-tick.C
		if err := c.TrySetCondition(t.Context(), node, testenv.Condition, []corev1.ConditionStatus{"False", "True"}[flips%2]); err != nil {
			t.Error(err)
			return flips
		}
	}
	return flips
}
