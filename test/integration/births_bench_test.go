package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/policy"
	"github.com/readygate/readygate/internal/readiness"
	"github.com/readygate/readygate/internal/testkit"
)

// creationsARound is how many nodes are created in a row before the number of rules changes.
const creationsARound = 100

// BenchmarkNodeCreation says how much longer the creation of a node takes with rules in the
// policy than without any policy. Each iteration goes through all numbers of rules, so that
// what else the machine does hits all of them.
func BenchmarkNodeCreation(b *testing.B) {
	c := testkit.StartCluster(b)
	if err := c.InstallPolicies(b.Context()); err != nil {
		b.Fatal(err)
	}
	bench := creationBench{Cluster: c, b: b, times: map[int][]time.Duration{}}
	numbers := []int{none, 0, 1, 10, 100}
	for b.Loop() {
		for _, n := range numbers {
			bench.install(n)
			bench.create(n)
		}
	}
	base := median(bench.times[none])
	b.ReportMetric(float64(base.Microseconds())/1000, "ms/creation")
	for _, n := range numbers[1:] {
		b.ReportMetric(float64(median(bench.times[n]))/float64(base), fmt.Sprintf("x/%d-rules", n))
	}
	b.ReportMetric(0, "ns/op") // of no interest: it is mostly waiting
}

// none stands for a policy that is not bound.
const none = -1

type creationBench struct {
	*testkit.Cluster
	b       *testing.B
	created int
	times   map[int][]time.Duration
}

// install writes a policy of n rules, as the manager does, and waits until it is in force.
func (c *creationBench) install(n int) {
	var rules []*v1alpha1.NodeReadinessRule
	for i := range n {
		rule := testkit.Rule(fmt.Sprintf("rule-%d", i), testkit.BootstrapOnly)
		rule.UID = uuid.NewUUID()
		rule.Spec.NodeSelector.MatchExpressions = []v1alpha1.NodeSelectorRequirement{{Key: "example.com/excluded", Operator: "DoesNotExist"}}
		rules = append(rules, rule)
	}
	// The last rule tells whether the policy is in force, and no creation that is measured
	// matches it.
	marker := testkit.Rule("marker", func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Value = fmt.Sprintf("with-%d-%d", n, c.created) })
	marker.UID = uuid.NewUUID()
	if n != 0 {
		rules = append(rules, marker)
	}
	c.bind(n != none)
	var obj admissionv1.MutatingAdmissionPolicy
	if err := c.Client.Get(c.b.Context(), types.NamespacedName{Name: policy.BirthsName}, &obj); err != nil {
		c.b.Fatal(err)
	}
	obj.Spec = policy.CompileBirths(readiness.NewRulebook(rules).Rules()).Spec()
	if err := c.Client.Update(c.b.Context(), &obj); err != nil {
		c.b.Fatal(err)
	}
	time.Sleep(3 * time.Second) // an API server looks for changes of policies once a second
	node := c.node(marker.Name)
	if value := taintValue(node, marker.Spec.Taint.Key); n > 0 && value != marker.Spec.Taint.Value || n <= 0 && value != "" {
		c.b.Fatalf("with %d rules the marker is %q", n, value)
	}
}

// bind makes or deletes the binding.
func (c *creationBench) bind(bound bool) {
	binding := policy.BirthsBinding()
	if !bound {
		_ = c.Client.Delete(c.b.Context(), binding) // it may be gone
		return
	}
	_ = c.Client.Create(c.b.Context(), binding) // it may be there
}

func taintValue(node *corev1.Node, key string) string {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			return taint.Value
		}
	}
	return ""
}

// create measures creations of nodes that the first rule selects, if there is one.
func (c *creationBench) create(n int) {
	for range creationsARound {
		start := time.Now()
		node := c.node("rule-0")
		c.times[n] = append(c.times[n], time.Since(start))
		if held := testkit.HasTaint(node, testkit.TaintKey("rule-0")); held != (n > 0) {
			c.b.Fatalf("with %d rules held is %v", n, held)
		}
	}
}

// node is a new node that looks like one that a kubelet registers.
func (c *creationBench) node(pool string) *corev1.Node {
	c.created++
	node := testkit.Node(fmt.Sprintf("node-%d", c.created), testkit.Pool(pool))
	for i := range 12 {
		node.Labels[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: t, Status: corev1.ConditionFalse, Reason: "Kubelet", Message: "kubelet says so"})
	}
	if err := c.Client.Create(c.b.Context(), node); err != nil {
		c.b.Fatal(err)
	}
	return node
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
