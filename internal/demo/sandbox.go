package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/scenario"
)

// sandbox takes the sandboxes of the pods of a Deployment on a node away, or gives them new ones, as a
// kubelet does. KWOK sets Ready, depending on their gates.
func (d *player) sandbox(ctx context.Context, sandbox *scenario.Sandbox) error {
	pods, err := d.podsOf(ctx, sandbox.Deploy, sandbox.Node)
	if err != nil {
		return err
	}
	for i := range pods {
		status := sandboxGone()
		if !sandbox.Gone {
			d.addresses++
			status = sandboxThere(&pods[i], address(d.addresses))
		}
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if err := d.client.Status().Patch(ctx, &pods[i], client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
			return fmt.Errorf("writing the status of pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// podsOf are the pods of a Deployment on a node, by name. It is an error if there is none.
func (d *player) podsOf(ctx context.Context, deploy, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := d.client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{appLabel: deploy}); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName != node || pod.DeletionTimestamp != nil
	})
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s has no pod on %s", deploy, node)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

// sandboxGone is the status of a pod that has no sandbox any more.
func sandboxGone() map[string]any {
	return map[string]any{"conditions": []map[string]any{
		kubeletOfPod(corev1.PodReadyToStartContainers, corev1.ConditionFalse, ""),
		kubeletOfPod(corev1.ContainersReady, corev1.ConditionFalse, "ContainersNotReady"),
		kubeletOfPod(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady"),
	}}
}

// sandboxThere is the status of a pod that has another one, with this address.
func sandboxThere(pod *corev1.Pod, address string) map[string]any {
	conditions := []map[string]any{
		kubeletOfPod(corev1.PodReadyToStartContainers, corev1.ConditionTrue, ""),
		kubeletOfPod(corev1.ContainersReady, corev1.ConditionTrue, ""),
	}
	if len(pod.Spec.ReadinessGates) == 0 { // KWOK leaves it alone
		conditions = append(conditions, kubeletOfPod(corev1.PodReady, corev1.ConditionTrue, ""))
	}
	return map[string]any{
		"conditions": conditions, "podIP": address,
		"podIPs": []map[string]string{{"$patch": "replace"}, {"ip": address}},
	}
}

// kubeletOfPod is a condition of a pod as its kubelet writes it. An empty reason takes the old one
// away.
func kubeletOfPod(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": metav1.Now()}
}

// address is the nth address of a range of which KWOK gives pods none.
func address(n int) string { return fmt.Sprintf("10.201.%d.%d", n/250, n%250+1) }
