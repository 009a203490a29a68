package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/scenario"
)

// reboot takes a node down for a reboot, or brings it back with a new boot ID. Conditions of reporters
// stay unchanged, as on a real node.
func (s *session) reboot(ctx context.Context, name string, away bool) error {
	s.reporters.shutDown(name)
	mark := func(value any) error {
		return s.patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, fieldOwner,
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{controlplane.RebootAnnotation: value}}})
	}
	write := func(status map[string]any) error {
		return s.patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, fieldOwner, map[string]any{"status": status})
	}
	if away {
		// The annotation must be there before KWOK observes that the node is not Ready.
		if err := mark("true"); err != nil {
			return err
		}
		return write(map[string]any{"conditions": []corev1.NodeCondition{nodeReady(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")}})
	}
	err := write(map[string]any{ // in one write, like a kubelet
		"conditions": []corev1.NodeCondition{nodeReady(corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")},
		"nodeInfo":   map[string]string{"bootID": string(uuid.NewUUID())},
	})
	if err != nil {
		return err
	}
	if err := mark(nil); err != nil {
		return err
	}
	return s.reporters.boot(ctx, name)
}

func nodeReady(status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	now := metav1.Now()
	return corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
}

// newSandbox removes the sandboxes of the pods of a Deployment on a node, or gives them new ones, like a
// kubelet. KWOK sets Ready, depending on the gates.
func (s *session) newSandbox(ctx context.Context, deploy, node string, gone bool) error {
	pods, err := s.podsOf(ctx, deploy, node)
	if err != nil {
		return err
	}
	for i := range pods {
		status := sandboxGone()
		if !gone {
			s.addresses++
			status = sandboxThere(&pods[i], address(s.addresses))
		}
		if err := s.patch(ctx, &pods[i], fieldOwner, map[string]any{"status": status}); err != nil {
			return err
		}
	}
	return nil
}

// podsOf returns the pods of a Deployment on a node, by name, or an error if there are none.
func (s *session) podsOf(ctx context.Context, deploy, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := s.client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{appLabel: deploy}); err != nil {
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

// sandboxGone returns the status of a pod whose sandbox was removed.
func sandboxGone() map[string]any {
	return map[string]any{"conditions": []map[string]any{
		podCondition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, ""),
		podCondition(corev1.ContainersReady, corev1.ConditionFalse, "ContainersNotReady"),
		podCondition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady"),
	}}
}

// sandboxThere returns the status of a pod with a new sandbox and this address.
func sandboxThere(pod *corev1.Pod, address string) map[string]any {
	conditions := []map[string]any{
		podCondition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, ""),
		podCondition(corev1.ContainersReady, corev1.ConditionTrue, ""),
	}
	if len(pod.Spec.ReadinessGates) == 0 { // KWOK does not change it
		conditions = append(conditions, podCondition(corev1.PodReady, corev1.ConditionTrue, ""))
	}
	return map[string]any{
		"conditions": conditions, "podIP": address,
		"podIPs": []map[string]string{{"$patch": "replace"}, {"ip": address}},
	}
}

// podCondition returns a pod condition in the form that a kubelet writes. An empty reason removes the old one.
func podCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": metav1.Now()}
}

// address returns the nth address of a range that KWOK does not assign to pods.
func address(n int) string { return fmt.Sprintf("10.201.%d.%d", n/250, n%250+1) }

// setHealth changes the health of a component on a node.
func (s *session) setHealth(ctx context.Context, node string, change *scenario.Change) {
	if s.podComponents.sets(change.Name) {
		s.podComponents.setHealth(ctx, node, change.Name, change.Is)
		return
	}
	s.endpoints.setHealth(node, change.Name, change.Is)
}
