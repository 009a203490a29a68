package noderule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// benchBook has n rules that all select workers, each with a condition and a taint of its own.
func benchBook(n int) *noderule.Rulebook {
	var objs []*v1alpha1.NodeReadinessRule
	for i := range n {
		objs = append(objs, rule(fmt.Sprintf("rule-%d", i), taintKey(fmt.Sprintf("readiness.k8s.io/t%d", i)),
			requires(requirement(fmt.Sprintf("example.com/c%d", i), True))))
	}
	return noderule.NewRulebook(objs)
}

// poolRules are n rules of one taint, each for the nodes of a pool of its own.
func poolRules(n int) []*v1alpha1.NodeReadinessRule {
	var objs []*v1alpha1.NodeReadinessRule
	for i := range n {
		objs = append(objs, rule(fmt.Sprintf("rule-%d", i), selects("example.com/pool", fmt.Sprintf("pool-%d", i)),
			requires(requirement("example.com/c0", True))))
	}
	return objs
}

// benchNode is a worker of pool-0 as clouds make them, which the first of the rules holds and
// the others release. It has no annotations that are not ours: the manager does not keep them.
func benchNode(name string, rules int) *noderule.Node {
	n := worker(named(name), label("example.com/pool", "pool-0"), tainted("example.com/gpu=yes:NoSchedule"))
	for i := range 20 {
		label(fmt.Sprintf("example.com/label-%d", i), "value")(n)
	}
	for _, kubelet := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		reports(kubelet, False)(n)
	}
	for i := 1; i < rules; i++ {
		reports(fmt.Sprintf("example.com/c%d", i), True)(n)
	}
	return n
}

// settled is the node as the rules require.
func settled(book *noderule.Rulebook, n *noderule.Node) *noderule.Node {
	return book.Plan(n, noon).Apply(n)
}

// perRule reports what one rule costs.
func perRule(b *testing.B, rules int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rules), "ns/rule")
}

func BenchmarkEvaluate(b *testing.B) {
	r, boot := compiled(rule("net")), compiled(rule("boot", bootstrapOnly))
	for _, c := range []struct {
		name string
		rule *noderule.Rule
		node *noderule.Node
	}{
		{"met", r, benchNode("n", 0)}, {"unmet", r, benchNode("n", 0)}, {"not-selected", r, benchNode("n", 0)}, {"completed", boot, benchNode("n", 0)},
	} {
		switch c.name {
		case "met":
			ready(c.node)
		case "not-selected":
			label("role", "gateway")(c.node)
		case "completed":
			completed("boot")(c.node)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				noderule.Evaluate(c.rule, c.node, noon)
			}
		})
	}
}

// benchBooks are rulebooks of which every rule selects benchNode, and one of which 1 in 100 does.
func benchBooks() (names []string, books map[string]*noderule.Rulebook) {
	books = map[string]*noderule.Rulebook{}
	for _, count := range []int{1, 5, 100} {
		names = append(names, fmt.Sprintf("rules=%d", count))
		books[names[len(names)-1]] = benchBook(count)
	}
	const one = "rules=100,selecting=1"
	books[one] = noderule.NewRulebook(poolRules(100))
	return append(names, one), books
}

func BenchmarkPlan(b *testing.B) {
	names, books := benchBooks()
	for _, name := range names {
		book := books[name]
		fresh := benchNode("n", len(book.Rules()))
		held := settled(book, fresh)
		flipped := *held
		flipped.Conditions = append(slices.Clone(held.Conditions), benchNode("n", 2).Conditions[4])
		flipped.Conditions[len(flipped.Conditions)-1].Type = "example.com/c0"
		for _, state := range []struct {
			name string
			node *noderule.Node
		}{{"settled", held}, {"held", fresh}, {"released", &flipped}} {
			if book.Plan(state.node, noon).Empty() != (state.name == "settled") {
				b.Fatalf("%s, %s: not what is to be measured", name, state.name)
			}
			b.Run(name+"/"+state.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					book.Plan(state.node, noon)
				}
				perRule(b, len(book.Rules()))
			})
		}
	}
}

// The node is decoded and evaluated once, as in the controller of nodes.
func BenchmarkEvaluation(b *testing.B) {
	names, books := benchBooks()
	for _, name := range names {
		book := books[name]
		n := settled(book, benchNode("n", len(book.Rules())))
		b.Run(name+"/settled", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				book.Evaluate(n, noon).Plan(nil)
			}
			perRule(b, len(book.Rules()))
		})
	}
}

// heartbeat is the node after a heartbeat without a change.
func heartbeat(n *noderule.Node) *noderule.Node {
	after := *n
	after.Labels, after.Annotations = copied(n.Labels), copied(n.Annotations)
	after.Conditions = slices.Clone(n.Conditions)
	for i := range after.Conditions {
		after.Conditions[i].LastHeartbeatTime = metav1.NewTime(noon.Add(time.Minute))
	}
	return &after
}

func copied(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for key, value := range m {
		c[key] = value
	}
	return c
}

// Nearly all events of a quiet cluster are heartbeats.
func BenchmarkConcernsHeartbeat(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		book, before := benchBook(count), benchNode("n", 10)
		after := heartbeat(before)
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if book.Concerns(before, after) {
					b.Fatal("a heartbeat concerns no rule")
				}
			}
		})
	}
}

// The last of the rules, or none, names the condition: all others are asked in vain.
func BenchmarkConcernedConditionChange(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		book, before := benchBook(count), benchNode("n", 5)
		last := book.Rules()[count-1].Requirements[0].Type
		for name, conditionType := range map[string]string{"named": last, "foreign": "example.com/foreign"} {
			after := heartbeat(before)
			reports(conditionType, Unknown)(after)
			if concerned := book.Concerned(before, after); len(concerned) > 0 != (name == "named") {
				b.Fatalf("%s: concerns %d rules, which is not what is to be measured", name, len(concerned))
			}
			b.Run(fmt.Sprintf("rules=%d/%s", count, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					book.Concerned(before, after)
				}
				perRule(b, count)
			})
		}
	}
}

// benchFleet is nodes of which every tenth is held by the first rule.
func benchFleet(count int) []*noderule.Node {
	nodes := make([]*noderule.Node, count)
	for i := range nodes {
		nodes[(i*7919)%count] = benchNode(fmt.Sprintf("node-%05d", i), 10) // in no order, as a cache lists them
	}
	for i, n := range nodes {
		if i%10 > 0 {
			reports("example.com/c0", True)(n)
		}
	}
	return nodes
}

func BenchmarkSummarize(b *testing.B) {
	r := benchBook(1).Rules()[0]
	for _, count := range []int{5000, 15000} {
		nodes := benchFleet(count)
		for _, limit := range []int{v1alpha1.MaxListedNodes, 0} {
			b.Run(fmt.Sprintf("nodes=%d/limit=%d", count, limit), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					noderule.Summarize(r, slices.Values(nodes), noon, limit)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count), "ns/node")
			})
		}
	}
}

// A scrape of metrics counts the nodes of every rule.
func BenchmarkSummarizeEveryRule(b *testing.B) {
	nodes := benchFleet(5000)
	names, books := benchBooks()
	for _, name := range names {
		b.Run(name+"/nodes=5000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				books[name].Summaries(slices.Values(nodes), noon, 0)
			}
		})
	}
}

// With one taint for all, every rule has to be compared with every other one.
func BenchmarkNewRulebook(b *testing.B) {
	for _, count := range []int{10, 100, 460, 1000} {
		objs := poolRules(count)
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				noderule.NewRulebook(objs)
			}
			perRule(b, count)
		})
	}
}

// Every write of a rule's status is compared with the state before.
func BenchmarkSameRule(b *testing.B) {
	before, after := rule("net"), rule("net", takenOverAt(noon))
	b.ReportAllocs()
	for b.Loop() {
		if !noderule.SameRule(before, after) {
			b.Fatal("the status does not make another rule")
		}
	}
}
