package podgate_test

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// long is the age of sandboxes: longer than every deadline and delay in the tests.
const long = time.Minute

func longAgo() time.Time { return time.Now().Add(-long) }

// sandbox reports, like the kubelet, that the pod has had a sandbox with this address since then.
func (s *stage) sandbox(pod *corev1.Pod, ip string, since time.Time) {
	s.t.Helper()
	s.patchStatus(pod, fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"$patch": "replace"}, {"ip": %q}], "conditions": [%s]}}`,
		ip, ip, s.conditionJSON(string(corev1.PodReadyToStartContainers), corev1.ConditionTrue, since)))
}

// noSandbox reports, like the kubelet, that the pod has lost its sandbox. The status keeps the address.
func (s *stage) noSandbox(pod *corev1.Pod) {
	s.t.Helper()
	s.condition(pod, string(corev1.PodReadyToStartContainers), corev1.ConditionFalse, time.Now())
}

// says sets the condition of the policy engine on the pod.
func (s *stage) says(pod *corev1.Pod, status corev1.ConditionStatus) {
	s.t.Helper()
	s.condition(pod, programmed, status, time.Now())
}

// condition sets a condition of the pod with this transition time.
func (s *stage) condition(pod *corev1.Pod, kind string, status corev1.ConditionStatus, since time.Time) {
	s.t.Helper()
	s.patchStatus(pod, fmt.Sprintf(`{"status": {"conditions": [%s]}}`, s.conditionJSON(kind, status, since)))
}

func (s *stage) conditionJSON(kind string, status corev1.ConditionStatus, since time.Time) []byte {
	s.t.Helper()
	data, err := json.Marshal(corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: status, LastTransitionTime: metav1.NewTime(since)})
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// patchStatus sends a strategic merge patch of the status, like kubelets.
func (s *stage) patchStatus(pod *corev1.Pod, patch string) {
	s.t.Helper()
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := s.Client.Status().Patch(s.t.Context(), target, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		s.t.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
}

// nodeCondition sets a condition of the stage's node with this heartbeat time.
func (s *stage) nodeCondition(kind string, status corev1.ConditionStatus, told time.Time) {
	s.t.Helper()
	base := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.id}}
	changed := base.DeepCopy()
	changed.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeConditionType(kind), Status: status, LastHeartbeatTime: metav1.NewTime(told), LastTransitionTime: metav1.NewTime(told),
	}}
	if err := s.Client.Status().Patch(s.t.Context(), changed, client.StrategicMergeFrom(base)); err != nil {
		s.t.Fatalf("reporting %s: %v", kind, err)
	}
}
