package live_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
)

func fedRule() *v1alpha1.NodeReadinessRule {
	return &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: "network", UID: "uid-network"},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: "example.com/network", RequiredStatus: corev1.ConditionTrue}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/network", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"role": "worker"}},
		},
	}
}

func fedNode(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": "worker"}},
		Spec:       corev1.NodeSpec{Taints: taints},
	}
}

func TestFleetAcceptsObjectsWithoutACluster(t *testing.T) {
	fleet := live.NewFleet(time.Now)
	fleet.Put(fedRule(), fedNode("a"))
	follower, before := fleet.Follow()
	defer follower.Stop()
	if len(before.Rules) != 1 || len(before.Nodes) != 1 || before.Nodes[0].State != noderule.Released {
		t.Fatalf("before: %+v", before)
	}

	held := fedNode("a", corev1.Taint{Key: "readiness.k8s.io/network", Effect: corev1.TaintEffectNoSchedule})
	fleet.Put(held, fedNode("b"))
	<-follower.Changed()
	delta := follower.Take()
	if len(delta.Nodes) != 2 || delta.Nodes[0].State != noderule.Held || delta.Rules[0].Count.Held != 1 {
		t.Errorf("after a change: %+v", delta)
	}

	fleet.Drop(held, fedRule())
	<-follower.Changed()
	if delta := follower.Take(); len(delta.Gone) != 1 || delta.Gone[0] != "a" || len(delta.Rules) != 0 || delta.Nodes[0].State != noderule.NotSelected {
		t.Errorf("after they are gone: %+v", delta)
	}
}
