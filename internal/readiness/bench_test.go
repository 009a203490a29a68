package readiness_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/readiness"
)

// benchBook has n rules that all select workers, each with a condition and a taint of its own.
func benchBook(n int) *readiness.Rulebook {
	var objs []*v1alpha1.NodeReadinessRule
	for i := range n {
		objs = append(objs, rule(fmt.Sprintf("rule-%d", i), taintKey(fmt.Sprintf("readiness.k8s.io/t%d", i)),
			requires(requirement(fmt.Sprintf("example.com/c%d", i), True))))
	}
	return readiness.NewRulebook(objs)
}

// benchNode is a worker as clouds make them, which the first of the rules of benchBook holds and
// the others release.
func benchNode(name string, rules int) *readiness.Node {
	n := worker(named(name), tainted("example.com/gpu=yes:NoSchedule"), annotated("node.alpha.kubernetes.io/ttl", "0"))
	for i := range 12 {
		label(fmt.Sprintf("example.com/label-%d", i), "value")(n)
		annotated(fmt.Sprintf("example.com/note-%d", i), "value")(n)
	}
	for _, kubelet := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		reports(kubelet, False)(n)
	}
	for i := 1; i < rules; i++ {
		reports(fmt.Sprintf("example.com/c%d", i), True)(n)
	}
	return n
}

func BenchmarkPlan(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		book, n := benchBook(count), benchNode("n", count)
		settled := book.Plan(n, noon).Apply(n)
		b.Run(fmt.Sprintf("rules=%d/settled", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				book.Plan(settled, noon)
			}
		})
		b.Run(fmt.Sprintf("rules=%d/new", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				book.Plan(n, noon)
			}
		})
	}
}

// Heartbeats are nearly all of what a quiet cluster says.
func BenchmarkConcernsHeartbeat(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		book, before := benchBook(count), benchNode("n", 10)
		after := *before
		after.Conditions = slices.Clone(before.Conditions)
		for i := range after.Conditions {
			after.Conditions[i].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Minute))
		}
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if book.Concerns(before, &after) {
					b.Fatal("a heartbeat concerns nobody")
				}
			}
		})
	}
}

func BenchmarkSummarize(b *testing.B) {
	r := benchBook(1).Rules()[0]
	nodes := make([]*readiness.Node, 5000)
	for i := range nodes {
		nodes[i] = benchNode(fmt.Sprintf("node-%04d", i), 10)
		if i%10 > 0 {
			reports("example.com/c0", True)(nodes[i])
		}
	}
	b.Run("nodes=5000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			readiness.Summarize(r, slices.Values(nodes), v1alpha1.MaxListedNodes)
		}
	})
}

func BenchmarkNewRulebook(b *testing.B) {
	for _, count := range []int{10, 100} {
		var objs []*v1alpha1.NodeReadinessRule
		for i := range count { // one taint for all: every pair of rules has to be compared
			objs = append(objs, rule(fmt.Sprintf("rule-%d", i), selects("pool", fmt.Sprintf("p%d", i))))
		}
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				readiness.NewRulebook(objs)
			}
		})
	}
}
