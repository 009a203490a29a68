package podrule

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

// Node is what is known of the pod's node.
type Node struct {
	Conditions []corev1.NodeCondition
	BootID     string
	// Booted is when it booted; zero if it is not known. A condition that is older does not count.
	Booted time.Time
	// Settles is when the kubelet will have reported the status of all its pods since the boot. Until then the API may
	// have their status from before the boot; zero: it has not.
	Settles time.Time
}

// Subject is a pod with the other inputs of a decision.
type Subject struct {
	Pod *corev1.Pod
	// Namespace are the labels of the pod's namespace.
	Namespace map[string]string
	Node      Node
	// Seen is when the caller first observed the sandbox with its address; zero: when the sandbox was ready. The kubelet
	// reports a sandbox, pulls images, and only then reports its address.
	Seen time.Time
	// History has the caller's earlier decisions about the pod; nil: none.
	History *History
	// Delivers says that the caller makes the kubelet deliver keys: it touches a key while the latch runs.
	Delivers bool
	// OthersClosed is the number of other pods of the node whose key is open and whose latch is closed.
	OthersClosed int
	// SlowestLatch is the longest time in the last minute between the write of a key and the report that its
	// latch has ended, of all pods of the node; zero: not known.
	SlowestLatch time.Duration
	// Written is when the agent last wrote the latch key of the pod; zero: not since the agent started.
	Written time.Time
}

// Sandbox returns the pod's sandbox according to its status.
func (s *Subject) Sandbox() latchkey.Sandbox { return sandboxOf(s.Pod, &s.Node) }

// Gates are the readiness gates of a pod that rules can have, each once. Names without a prefix belong to Kubernetes,
// e.g. Ready.
func Gates(pod *corev1.Pod) []string {
	var gates []string
	for _, gate := range pod.Spec.ReadinessGates {
		if name := string(gate.ConditionType); strings.Contains(name, "/") && !slices.Contains(gates, name) {
			gates = append(gates, name)
		}
	}
	return gates
}

// Asked are the gates that rules added when the pod was created, according to the annotation of the API server.
func Asked(pod *corev1.Pod) []string {
	asked := strings.Fields(pod.Annotations[v1alpha1.GatesAnnotation])
	return slices.DeleteFunc(Gates(pod), func(gate string) bool { return !slices.Contains(asked, gate) })
}

// Ours are the gates of the pod that rules may open: those that rules added, and the well-known gate, which the pod's own
// manifest may contain. Any other gate belongs to another controller.
func Ours(pod *corev1.Pod) []string {
	asked := Asked(pod)
	return slices.DeleteFunc(Gates(pod), func(gate string) bool { return gate != v1alpha1.DefaultGate && !slices.Contains(asked, gate) })
}

// HasLatch reports whether containers of the pod wait for its latch.
func HasLatch(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.LatchName })
}

// Over reports whether the pod will not run anymore, so that its gates do not matter.
func Over(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// sandboxOf returns the pod's sandbox according to its status. After a boot of the node, the status may still have the
// sandbox from before, until the kubelet has checked the pod.
func sandboxOf(pod *corev1.Pod, node *Node) latchkey.Sandbox {
	sandbox := latchkey.Sandbox{Boot: node.BootID}
	if pod.Spec.RuntimeClassName != nil {
		sandbox.Boot = "" // in a virtual machine the latch sees another one
	}
	ready := condition(pod, string(corev1.PodReadyToStartContainers))
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		sandbox.IP, sandbox.Since = pod.Status.PodIP, ready.LastTransitionTime.Time
	case ready == nil && pod.Status.PodIP != "" && pod.Status.StartTime != nil: // e.g. a virtual kubelet
		sandbox.IP, sandbox.Since = pod.Status.PodIP, pod.Status.StartTime.Time
	}
	return sandbox
}

// Started is when a container of the pod was last started; zero if no start is known.
func Started(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if running := statuses[i].State.Running; running != nil {
				last = latest(last, running.StartedAt.Time)
			}
			if ended := statuses[i].State.Terminated; ended != nil {
				last = latest(last, ended.StartedAt.Time)
			}
		}
	}
	return last
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

// IsTrue reports whether the pod's condition of a type is True.
func IsTrue(pod *corev1.Pod, kind string) bool {
	is := condition(pod, kind)
	return is != nil && is.Status == corev1.ConditionTrue
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
