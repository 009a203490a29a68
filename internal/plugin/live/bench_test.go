package live_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/live"
)

// fleetOf is this many nodes, and rules that select all of them.
func fleetOf(rules, nodes int) (*live.Fleet, func(i int, status corev1.ConditionStatus) *corev1.Node) {
	fleet := live.NewFleet(time.Now)
	node := func(i int, status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{"role": "worker"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "example.com/Ready", Status: status}}},
		}
	}
	for i := range nodes {
		fleet.Put(node(i, corev1.ConditionTrue))
	}
	for i := range rules {
		name := fmt.Sprint("rule-", i)
		fleet.Put(&v1alpha1.NodeReadinessRule{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: v1alpha1.NodeReadinessRuleSpec{
				Conditions:      []v1alpha1.ConditionRequirement{{Type: "example.com/Ready", RequiredStatus: corev1.ConditionTrue}},
				Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/" + name, Effect: corev1.TaintEffectNoSchedule},
				EnforcementMode: v1alpha1.EnforcementModeContinuous,
				NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"role": "worker"}},
			},
		})
	}
	return fleet, node
}

// The cost of one change must not grow with the number of nodes.
func BenchmarkAChangeOfANode(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		b.Run(fmt.Sprintf("rules=5/nodes=%d", nodes), func(b *testing.B) {
			fleet, node := fleetOf(5, nodes)
			follower, _ := fleet.Follow()
			defer follower.Stop()
			states := []*corev1.Node{node(7, corev1.ConditionFalse), node(7, corev1.ConditionTrue)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				fleet.Put(states[i%2])
				follower.Take()
			}
		})
	}
}
