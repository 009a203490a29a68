package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxListedPods bounds each list of pods in a rule's status. The counts in
// status.summary are always complete.
const MaxListedPods = 20

// PodReadinessRuleStatus is what became of a rule. Its size does not grow with
// the cluster.
type PodReadinessRuleStatus struct {
	// observedGeneration is the generation of the spec that this status speaks
	// of.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule: Accepted (valid), Enforced (selected pods are
	// created with the gate, and every node that needs one has a live agent that
	// opens it) and SoleController (only while it is False: another controller
	// of NodeReadinessRule renews its lease), each with its reason.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary counts the pods that the rule selects.
	//
	// +optional
	Summary *PodSummary `json:"summary,omitempty"`

	// waitingPods are pods whose gate or latch is closed, those that wait for longest
	// first; at most 20.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	WaitingPods []ListedPod `json:"waitingPods,omitempty"`

	// ungatedPods are selected pods that do not carry the gate, and why; at
	// most 20. They are not held: create them anew to have them gated.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	UngatedPods []ListedPod `json:"ungatedPods,omitempty"`

	// nodesWithoutAgent are nodes that have selected pods and no live agent; at
	// most 20.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=253
	NodesWithoutAgent []string `json:"nodesWithoutAgent,omitempty"`
}

// PodSummary counts the pods that a rule selects, on nodes with a live agent
// as it last told, on others as the manager last saw.
type PodSummary struct {
	// gated is the number of selected pods that carry the gate.
	Gated int32 `json:"gated"`
	// open is the number of those whose gate is open, and whose latch, if they
	// have one, has let their containers start.
	Open int32 `json:"open"`
	// waiting is the number of those whose gate or latch is closed, or whose gate
	// is True without a decision of Readygate (foreign).
	Waiting int32 `json:"waiting"`
	// latchClosed is the number of waiting pods whose gate is open and whose
	// latch is still closed: the kubelet has not delivered the key yet, or has
	// not reported that the latch ended.
	//
	// +optional
	LatchClosed int32 `json:"latchClosed,omitempty"`
	// late is the number of waiting pods that wait for longer than
	// spec.deadlineSeconds.
	Late int32 `json:"late"`
	// ungated is the number of selected pods that do not carry the gate.
	Ungated int32 `json:"ungated"`
	// withoutAgent is the number of selected pods with the gate on nodes
	// without a live agent.
	WithoutAgent int32 `json:"withoutAgent"`
	// foreign is the number of waiting pods whose gate another account set to
	// True while a component is missing. Absent means none.
	//
	// +optional
	Foreign int32 `json:"foreign,omitempty"`
}

// ListedPod is a pod, and what is to be said of it.
type ListedPod struct {
	// namespace of the pod.
	//
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the pod.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// node that the pod is on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// since is since when the pod waits.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// why is what it waits for, or why it does not carry the gate.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Why string `json:"why,omitempty"`
}
