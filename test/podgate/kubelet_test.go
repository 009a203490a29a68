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

// long is for how long sandboxes have been there: longer than anybody waits before something is said.
const long = time.Minute

func longAgo() time.Time { return time.Now().Add(-long) }

// sandbox lets the kubelet say that the pod has had a sandbox with this address since then.
func (s *stage) sandbox(pod *corev1.Pod, ip string, since time.Time) {
	s.t.Helper()
	s.patchStatus(pod, fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"$patch": "replace"}, {"ip": %q}], "conditions": [%s]}}`,
		ip, ip, s.conditionJSON(string(corev1.PodReadyToStartContainers), corev1.ConditionTrue, since)))
}

// noSandbox lets the kubelet say that the pod has lost its sandbox. Its address is still told.
func (s *stage) noSandbox(pod *corev1.Pod) {
	s.t.Helper()
	s.condition(pod, string(corev1.PodReadyToStartContainers), corev1.ConditionFalse, time.Now())
}

// says lets the policy engine say of the pod whether it is programmed.
func (s *stage) says(pod *corev1.Pod, status corev1.ConditionStatus) {
	s.t.Helper()
	s.condition(pod, programmed, status, time.Now())
}

// condition lets somebody set a condition of the pod that has been so since then.
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

// patchStatus sends a strategic merge patch of the status, as kubelets do.
func (s *stage) patchStatus(pod *corev1.Pod, patch string) {
	s.t.Helper()
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := s.Client.Status().Patch(s.t.Context(), target, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		s.t.Fatalf("writing the status of pod %s: %v", pod.Name, err)
	}
}

// nodeCondition lets somebody report a condition of the stage's node that was last told then.
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
