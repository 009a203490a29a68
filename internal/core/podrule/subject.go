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
	// Booted is when it booted; zero if it is not known. A condition that is older says nothing.
	Booted time.Time
	// Settles is when the kubelet has told of all its pods since the boot. Until then its pods may
	// still be told of as they were before; zero: they are not.
	Settles time.Time
}

// Subject is a pod with what a decision needs besides.
type Subject struct {
	Pod *corev1.Pod
	// Namespace are the labels of the pod's namespace.
	Namespace map[string]string
	Node      Node
	// Seen is since when who decides has known of the sandbox, with its address; zero: ever since it
	// has been there. The kubelet tells of a sandbox, pulls images, and tells of its address then.
	Seen time.Time
	// History is what who decides remembers of its decisions about the pod; nil: nothing.
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

// Sandbox is the pod's sandbox as its status tells.
func (s *Subject) Sandbox() latchkey.Sandbox { return sandboxOf(s.Pod, &s.Node) }

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

// HasLatch reports whether containers of the pod wait for its latch.
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
	ready := condition(pod, string(corev1.PodReadyToStartContainers))
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		sandbox.IP, sandbox.Since = pod.Status.PodIP, ready.LastTransitionTime.Time
	case ready == nil && pod.Status.PodIP != "" && pod.Status.StartTime != nil: // a virtual kubelet, say
		sandbox.IP, sandbox.Since = pod.Status.PodIP, pod.Status.StartTime.Time
	}
	return sandbox
}

// Started is when a container of the pod was last started; zero if none is known of.
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
