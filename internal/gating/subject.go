package gating

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/latchkey"
)

// Node is what is known of the pod's node.
type Node struct {
	Conditions []corev1.NodeCondition
	BootID     string
	// Booted is when it booted; zero if it is not known. A condition that is older says nothing.
	Booted time.Time
}

// Subject is a pod with what a decision needs besides.
type Subject struct {
	Pod *corev1.Pod
	// Namespace are the labels of the pod's namespace.
	Namespace map[string]string
	Node      Node
}

// Gates are the readiness gates of a pod that can be of rules, each once. Names without a prefix are
// Kubernetes' own, as Ready.
func Gates(pod *corev1.Pod) []string {
	var gates []string
	for _, gate := range pod.Spec.ReadinessGates {
		if name := string(gate.ConditionType); strings.Contains(name, "/") && !slices.Contains(gates, name) {
			gates = append(gates, name)
		}
	}
	return gates
}

// Asked are the gates of the pod that rules asked for as it was created, as the API server noted.
func Asked(pod *corev1.Pod) []string {
	asked := strings.Fields(pod.Annotations[v1alpha1.GatesAnnotation])
	return slices.DeleteFunc(Gates(pod), func(gate string) bool { return !slices.Contains(asked, gate) })
}

// Ours are the gates of the pod that rules may open: those that they asked for, and the well-known
// one, with which a pod may have been created. Any other one is somebody else's.
func Ours(pod *corev1.Pod) []string {
	asked := Asked(pod)
	return slices.DeleteFunc(Gates(pod), func(gate string) bool { return gate != v1alpha1.DefaultGate && !slices.Contains(asked, gate) })
}

// HasLatch says whether containers of the pod wait for its latch.
func HasLatch(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.LatchName })
}

// Over says that the pod will not run any more: nobody waits for its gates.
func Over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sandboxOf is the pod's sandbox as its status tells. One that is from before the boot of the node
// may still be told of, until the kubelet has looked.
func sandboxOf(pod *corev1.Pod, node *Node) latchkey.Sandbox {
	sandbox := latchkey.Sandbox{Boot: node.BootID}
	if pod.Spec.RuntimeClassName != nil {
		sandbox.Boot = "" // in a virtual machine the latch sees another one
	}
	if ready := condition(pod, string(corev1.PodReadyToStartContainers)); ready != nil && ready.Status == corev1.ConditionTrue {
		sandbox.IP, sandbox.Since = pod.Status.PodIP, ready.LastTransitionTime.Time
	}
	return sandbox
}

// condition is the pod's condition of a type; nil if it has none.
func condition(pod *corev1.Pod, kind string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func nodeCondition(node *Node, kind string) *corev1.NodeCondition {
	for i := range node.Conditions {
		if string(node.Conditions[i].Type) == kind {
			return &node.Conditions[i]
		}
	}
	return nil
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
