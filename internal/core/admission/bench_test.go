package admission_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// benchRules are rules for one pool of nodes each.
func benchRules(n int) []*v1alpha1.NodeReadinessRule {
	objs := manyRules(n)
	for i, obj := range objs {
		selects("pool", strconv.Itoa(i))(obj)
	}
	return objs
}

func BenchmarkCompileTaintNewNodes(b *testing.B) {
	for _, count := range []int{1, 10, 100} {
		rules := noderule.NewRulebook(benchRules(count)).Rules()
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				admission.TaintNewNodesSpec(admission.CompileTaintNewNodes(rules))
			}
		})
	}
}

// What an API server pays for a change of the policy.
func BenchmarkCompileByTheAPIServer(b *testing.B) {
	for _, count := range []int{0, 1, 10, 100} {
		spec := admission.TaintNewNodesSpec(taintNewNodes(benchRules(count)...))
		b.Run(fmt.Sprintf("rules=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newMutator(b, spec)
			}
		})
	}
}

// What the creation of a node pays: one that the last of the rules holds, and one that no
// rule selects. What is left with no rules is not ours.
func BenchmarkAdmit(b *testing.B) {
	for _, count := range []int{0, 1, 10, 100} {
		m := newMutator(b, admission.TaintNewNodesSpec(taintNewNodes(benchRules(count)...)))
		for name, n := range map[string]*corev1.Node{"held": benchNode(label("pool", strconv.Itoa(count-1))), "not-selected": benchNode()} {
			b.Run(fmt.Sprintf("rules=%d/%s", count, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.mutate(created(n)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// What each write of a node by the manager pays: the hold of so many rules.
func BenchmarkManagerPolicyOnManagerWrites(b *testing.B) {
	v := newValidatorFor(b, environment.DefaultCompatibilityVersion(), admission.Manager().Spec)
	for _, count := range []int{1, 5} {
		var holds []nodeOption
		for i := range count {
			holds = append(holds, tainted(fmt.Sprintf("readiness.k8s.io/rule-%d=pending:NoSchedule", i)), annotated(fmt.Sprintf("%s%d", v1alpha1.HoldPrefix, i), "{}"))
		}
		free, held := benchNode(), benchNode(holds...)
		for name, r := range map[string]request{"hold": updated(free, held), "release": updated(held, free)} {
			r = r.by(admission.ManagerUser)
			b.Run(fmt.Sprintf("rules=%d/%s", count, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if messages, err := v.validate(r); err != nil || len(messages) > 0 {
						b.Fatal(messages, err)
					}
				}
			})
		}
	}
}

// What every other write of a node pays: the question whose it is.
func BenchmarkManagerPolicyOnOtherWrites(b *testing.B) {
	v := newValidatorFor(b, environment.DefaultCompatibilityVersion(), admission.Manager().Spec)
	r := updated(benchNode(), benchNode()).by("system:node:n").of("status")
	for b.Loop() {
		if messages, err := v.validate(r); err != nil || len(messages) > 0 {
			b.Fatal(messages, err)
		}
	}
}

// benchNode is a node as clouds make them.
func benchNode(options ...nodeOption) *corev1.Node {
	n := node(append([]nodeOption{tainted(notReady + ":NoSchedule"), annotated("node.alpha.kubernetes.io/ttl", "0")}, options...)...)
	for i := range 20 {
		label(fmt.Sprintf("example.com/label-%d", i), "value")(n)
		annotated(fmt.Sprintf("example.com/note-%d", i), "value")(n)
	}
	for _, kubelet := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		reports(kubelet, False)(n)
	}
	return n
}
