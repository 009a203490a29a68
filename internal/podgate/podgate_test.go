package podgate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/podrule"
)

// A stripped pod has everything that a decision needs.
func TestStripKeepsWhatDecisionsNeed(t *testing.T) {
	class := "kata"
	pod := sandboxed("10.0.0.7", time.Unix(1e9, 0))
	pod.Annotations = map[string]string{"readygate.dev/gates": "g", "readygate.dev/latch": "k", "foreign": "x"}
	pod.Spec = corev1.PodSpec{
		NodeName: "n1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "g"}}, RuntimeClassName: &class, HostNetwork: true, OS: &corev1.PodOS{Name: corev1.Windows},
		NodeSelector: map[string]string{corev1.LabelOSStable: "windows", "x": "y"}, InitContainers: []corev1.Container{{Name: "other"}, {Name: "readygate-latch", Image: "i"}},
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "other"}, {Name: "readygate-latch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	kept := strip(pod)
	if !podrule.LatchEnded(kept) {
		t.Errorf("the end of the latch is lost: %+v", kept.Status)
	}
	if !podrule.HasLatch(kept) || podrule.Eligible(kept) || podrule.SandboxSince(kept).IsZero() || kept.Spec.RuntimeClassName == nil || len(kept.Annotations) != 2 || kept.Status.PodIP == "" || len(kept.Spec.ReadinessGates) != 1 {
		t.Errorf("it is %+v", kept)
	}
	kept.Spec.HostNetwork, kept.Spec.OS = false, nil
	if podrule.Eligible(kept) {
		t.Error("that it is for nodes with Windows is lost")
	}
}
