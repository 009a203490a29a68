package integration_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

func crdObject() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{}
}

// The test counts the manager's requests in the audit log of the API server.
func TestCost(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	const nodes = 40
	// Two rules select the same nodes: one change of a node still costs one PATCH.
	rules := []*v1alpha1.NodeReadinessRule{testenv.Rule("cost-a"), testenv.Rule("cost-b")}
	for _, rule := range rules {
		rule.Spec.NodeSelector = testenv.Rule("cost").Spec.NodeSelector
		c.Create(t, rule)
	}
	for i := range nodes {
		c.CreateNode(t, testenv.Node(costNode(i), testenv.Pool("cost")), corev1.ConditionTrue)
	}
	p := c.StartProcess(t, testenv.ManagerUser, elect...)
	settled := func(heldNodes int32) {
		t.Helper()
		for _, rule := range rules {
			c.EventuallyRule(t, rule.Name, "settled", func(r *v1alpha1.NodeReadinessRule) bool {
				return testenv.Enforced(r) && r.Status.Summary.Selected == nodes && r.Status.Summary.Held == heldNodes
			})
		}
		silence(t, c, testenv.ManagerUser)
	}
	settled(0)

	t.Run("N changes of nodes cost N PATCHes", func(t *testing.T) {
		before := count(t, c)
		for i := range nodes {
			c.SetCondition(t, costNode(i), testenv.Condition, corev1.ConditionFalse)
		}
		settled(nodes)
		cost := count(t, c).since(before)
		if got := cost["patch nodes"]; got != nodes {
			t.Errorf("%d PATCHes for %d changes of nodes", got, nodes)
		}
		if got := cost["create events"] + cost["patch events"]; got != nodes {
			t.Errorf("%d event writes for %d changes of nodes, by %d rules", got, nodes, len(rules))
		}
		if got := cost["get nodes"] + cost["list nodes"]; got != 0 {
			t.Errorf("%d reads of nodes from the API server", got)
		}
		t.Logf("requests: %v", cost)
	})
	t.Run("status writes of a rule are at least a second apart", func(t *testing.T) {
		last := map[string]time.Time{}
		for _, request := range c.Requests(t, testenv.ManagerUser) {
			if request.Subresource != "status" || request.Verb != "patch" {
				continue
			}
			// Measured at the API server: a delayed request may precede a fast one.
			if gap := request.At.Sub(last[request.Name]); gap < statusGap {
				t.Errorf("status of %s written after %v", request.Name, gap)
			}
			last[request.Name] = request.At
		}
	})
	t.Run("a quiet minute costs only writes of leases", func(t *testing.T) {
		before, reconciles := count(t, c), reconciled(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		noise(ctx, t, c, nodes)
		cost := count(t, c).since(before)
		for what, n := range cost {
			// A watch lasts for minutes: at most one per kind ends in this time.
			if !strings.HasSuffix(what, " leases") && (!strings.HasPrefix(what, "watch ") || n > 1) {
				t.Errorf("%d × %s", n, what)
			}
		}
		if now := reconciled(t, p); now != reconciles {
			t.Errorf("changes that concern no rule caused reconciles: %s before, %s after", reconciles, now)
		}
		t.Logf("requests: %v", cost)
	})
}

const statusGap = 500 * time.Millisecond

func costNode(i int) string { return fmt.Sprintf("cost-%02d", i) }

// noise writes as in a quiet cluster: heartbeats, and labels, taints, annotations and conditions that no rule names.
func noise(ctx context.Context, t *testing.T, c *testenv.Cluster, nodes int) {
	t.Helper()
	writes := 0
	for i := 0; ctx.Err() == nil; i++ {
		name := costNode(i % nodes)
		_ = c.TrySetCondition(ctx, name, testenv.Condition, corev1.ConditionFalse) // a heartbeat
		_ = c.TrySetCondition(ctx, name, "Ready", []corev1.ConditionStatus{"True", "False"}[i/nodes%2])
		node := &corev1.Node{}
		node.Name = name
		if ctx.Err() == nil {
			c.Patch(t, node, func() {
				node.Labels["example.com/noise"] = strconv.Itoa(i)
				node.Annotations["example.com/noise"] = strconv.Itoa(i)
				put(node, "example.com/noise", !bears(node, "example.com/noise"))
			})
		}
		writes++
		pause(ctx, 50*time.Millisecond)
	}
	if writes < nodes {
		t.Errorf("only %d rounds of noise", writes)
	}
}

// requests counts requests by verb and resource.
type requests map[string]int

func count(t *testing.T, c *testenv.Cluster) requests {
	t.Helper()
	counted := requests{}
	for _, request := range c.Requests(t, testenv.ManagerUser) {
		resource := request.Resource
		if request.Subresource != "" {
			resource += "/" + request.Subresource
		}
		counted[request.Verb+" "+resource]++
	}
	return counted
}

func (r requests) since(before requests) requests {
	rest := requests{}
	for what, n := range r {
		if n > before[what] {
			rest[what] = n - before[what]
		}
	}
	return rest
}

var reconcileTotal = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{.*\} \d+$`)

// reconciled returns the number of reconciles per controller, from the manager's metrics.
func reconciled(t *testing.T, p *testenv.Process) string {
	t.Helper()
	_, body := get(t.Context(), p.Metrics, "/metrics")
	lines := reconcileTotal.FindAllString(body, -1)
	if len(lines) == 0 {
		t.Fatalf("no reconcile metric in:\n%s", body)
	}
	return strings.Join(lines, "\n")
}
