package noderule_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

func TestNodeOfKeepsWhatDecisionsNeed(t *testing.T) {
	obj := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", CreationTimestamp: metav1.NewTime(noon),
			Labels: map[string]string{"role": "worker"}, Annotations: map[string]string{"example.com/x": "y"},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: notReady, Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: True}}},
	}
	n := noderule.NodeOf(obj)
	if n.Name != "n1" || n.UID != "u1" || !n.Created.Equal(noon) {
		t.Errorf("identity: got %s %s %s", n.Name, n.UID, n.Created)
	}
	if !maps.Equal(n.Labels, obj.Labels) || !maps.Equal(n.Annotations, obj.Annotations) {
		t.Errorf("labels %v, annotations %v", n.Labels, n.Annotations)
	}
	if !slices.Equal(n.Taints, obj.Spec.Taints) || !slices.Equal(n.Conditions, obj.Status.Conditions) {
		t.Errorf("taints %v, conditions %v", n.Taints, n.Conditions)
	}
}

func TestWhichAnnotationsBelongToReadygate(t *testing.T) {
	for key, want := range map[string]bool{
		holdKey("net"):      true,
		completedKey("net"): true,
		"readiness.k8s.io/bootstrap-completed-net":  true,
		"readiness.k8s.io/something-else":           false,
		"readygate.dev/something-else":              false,
		"example.com/readygate.dev/hold-net":        false,
		"node.alpha.kubernetes.io/ttl":              false,
		"kubeadm.alpha.kubernetes.io/cri-socket":    false,
		"volumes.kubernetes.io/controller-managed-": false,
	} {
		if got := noderule.IsOurs(key); got != want {
			t.Errorf("%s: got %t, want %t", key, got, want)
		}
	}
}

func TestTaintIDIsKeyAndEffect(t *testing.T) {
	n := node(tainted(networkTaint + "=pending:NoSchedule"))
	id := noderule.TaintID{Key: networkTaint, Effect: corev1.TaintEffectNoSchedule}
	if !n.Has(id) || id.String() != holdRecord {
		t.Errorf("the node has %v: %t", id, n.Has(id))
	}
	if other := (noderule.TaintID{Key: networkTaint, Effect: corev1.TaintEffectNoExecute}); n.Has(other) {
		t.Errorf("the node does not have %v", other)
	}
}

func TestLastTransitionIsOfConditionsThatTheRuleNames(t *testing.T) {
	at := func(conditionType string, hours int) nodeOption {
		return func(n *noderule.Node) {
			n.Conditions = append(n.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(conditionType), Status: True,
				LastTransitionTime: metav1.NewTime(dayOne.Add(time.Duration(hours) * time.Hour))})
		}
	}
	r := compiled(rule("two", requires(requirement("NetworkReady", True), requirement("StorageReady", True))))
	if got := worker(at("StorageReady", 3), at("NetworkReady", 2), at("Ready", 9)).LastTransition(r); !got.Equal(dayOne.Add(3 * time.Hour)) {
		t.Errorf("got %s, want the later of the two", got)
	}
	if got := worker(at("Ready", 9)).LastTransition(r); !got.IsZero() {
		t.Errorf("got %s, want none", got)
	}
}
