package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/testenv"
)

// creationsARound is the number of nodes that are created through each API server before the number of rules changes.
const creationsARound = 150

// BenchmarkNodeCreation measures how much longer the creation of a node takes with the policy than without it, for
// several numbers of rules, for a node that a rule holds and for one that no rule holds. Creations alternate between an
// API server with the policy and one without, so that other load on the machine affects both.
func BenchmarkNodeCreation(b *testing.B) {
	c := testenv.StartCluster(b)
	if err := c.InstallPolicies(b.Context()); err != nil {
		b.Fatal(err)
	}
	without := replica(b, c, "--disable-admission-plugins", "ServiceAccount,MutatingAdmissionPolicy")
	bench := creationBench{b: b, with: c.Client, without: without}
	for _, rules := range []int{0, 1, 10, 100} {
		bench.install(rules)
		bench.warmUp(rules)
		for name, pool := range map[string]string{"held": "rule-0", "not-selected": "none"} {
			b.Run(fmt.Sprintf("rules=%d/%s", rules, name), func(b *testing.B) { bench.compare(b, pool) })
		}
	}
}

// compare creates nodes of the pool through both API servers in turn.
func (c *creationBench) compare(b *testing.B, pool string) {
	var with, without []time.Duration
	for b.Loop() {
		for range creationsARound {
			without = append(without, c.time(c.without, pool))
			with = append(with, c.time(c.with, pool))
		}
	}
	b.ReportMetric(float64(median(without).Microseconds())/1000, "ms-without")
	b.ReportMetric(float64(median(with).Microseconds())/1000, "ms-with")
	b.ReportMetric(float64(median(with))/float64(median(without)), "ratio")
	b.ReportMetric(0, "ns/op") // of many creations, so not useful
}

type creationBench struct {
	b             *testing.B
	with, without client.Client
	created       int
}

// install writes a policy with this number of rules, as the manager does.
func (c *creationBench) install(n int) {
	var rules []*v1alpha1.NodeReadinessRule
	for i := range n {
		rule := testenv.Rule(fmt.Sprintf("rule-%d", i), testenv.BootstrapOnly)
		rule.UID, rule.Status.TakenOverAt = uuid.NewUUID(), &metav1.Time{Time: time.Now()}
		rule.Spec.NodeSelector.MatchExpressions = []v1alpha1.NodeSelectorRequirement{{Key: "example.com/excluded", Operator: "DoesNotExist"}}
		rules = append(rules, rule)
	}
	obj := admission.TaintNewNodesPolicy()
	if err := c.with.Get(c.b.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		c.b.Fatal(err)
	}
	obj.Spec = admission.TaintNewNodesSpec(admission.CompileTaintNewNodes(noderule.NewRulebook(rules).Rules()))
	if err := c.with.Update(c.b.Context(), obj); err != nil {
		c.b.Fatal(err)
	}
}

// warmUp warms up both API servers, and returns when exactly one of them enforces the policy for the last rule.
func (c *creationBench) warmUp(rules int) {
	last := fmt.Sprintf("rule-%d", rules-1)
	testenv.Eventually(c.b, "the policy to be in force", func(context.Context) error {
		c.time(c.with, "rule-0")
		c.time(c.without, "rule-0")
		if held := testenv.HasTaint(c.node(c.with, last), testenv.TaintKey(last)); held != (rules > 0) {
			return fmt.Errorf("held: %v", held)
		}
		return nil
	})
	if testenv.HasTaint(c.node(c.without, last), testenv.TaintKey(last)) {
		c.b.Fatal("both API servers enforce the policy")
	}
}

// time returns how long the creation of a node of the pool takes.
func (c *creationBench) time(through client.Client, pool string) time.Duration {
	start := time.Now()
	c.node(through, pool)
	return time.Since(start)
}

// node returns a new node as a kubelet registers it.
func (c *creationBench) node(through client.Client, pool string) *corev1.Node {
	c.created++
	node := testenv.Node(fmt.Sprintf("node-%d", c.created), testenv.Pool(pool))
	for i := range 12 {
		node.Labels[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: "Kubelet", Message: "kubelet says so"})
	}
	if err := through.Create(c.b.Context(), node); err != nil {
		c.b.Fatal(err)
	}
	return node
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
