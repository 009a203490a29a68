package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxListedPods bounds each list of pods in a rule's status. The counts in
// status.summary are always complete.
const MaxListedPods = 20

// PodReadinessRuleStatus is the observed state of a rule. Its size does not
// grow with the cluster.
type PodReadinessRuleStatus struct {
	// observedGeneration is the generation of the spec that this status is for.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule. Accepted: the rule is valid. Enforced: selected
	// pods are created with the gate, and every node with such pods has a live
	// agent. SoleController: False while another controller of NodeReadinessRule
	// renews its lease; absent otherwise.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary counts the pods that the rule selects.
	//
	// +optional
	Summary *PodSummary `json:"summary,omitempty"`

	// waitingPods are pods whose gate or latch is closed, the longest wait first;
	// at most 20.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	WaitingPods []ListedPod `json:"waitingPods,omitempty"`

	// ungatedPods are selected pods that do not have the gate, and why; at most
	// 20. They do not wait. To gate them, delete and recreate them.
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

// PodSummary counts the pods that a rule selects. For nodes with a live agent
// it has the counts that the agent last reported, for other nodes those that
// the manager last observed.
type PodSummary struct {
	// gated is the number of selected pods that have the gate.
	Gated int32 `json:"gated"`
	// open is the number of gated pods whose gate is open and whose latch, if
	// they have one, has ended.
	Open int32 `json:"open"`
	// waiting is the number of gated pods whose gate or latch is closed, or whose
	// gate is True without a decision of Readygate (foreign).
	Waiting int32 `json:"waiting"`
	// latchClosed is the number of waiting pods whose gate is open and whose
	// latch is still closed: the kubelet has not delivered the key yet, or has
	// not reported yet that the latch ended. Absent means none.
	//
	// +optional
	LatchClosed int32 `json:"latchClosed,omitempty"`
	// late is the number of waiting pods that wait for longer than
	// spec.deadlineSeconds.
	Late int32 `json:"late"`
	// ungated is the number of selected pods that do not have the gate.
	Ungated int32 `json:"ungated"`
	// withoutAgent is the number of selected pods with the gate on nodes
	// without a live agent.
	WithoutAgent int32 `json:"withoutAgent"`
	// foreign is the number of waiting pods whose gate another account set to
	// True while a component is not ready. Absent means none.
	//
	// +optional
	Foreign int32 `json:"foreign,omitempty"`
}

// ListedPod is a pod in a list of the status, with an explanation.
type ListedPod struct {
	// namespace of the pod.
	//
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the pod.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// node of the pod. Absent means that the pod is not scheduled.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// since is when the pod began to wait.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// why is what the pod waits for, or why it does not have the gate.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Why string `json:"why,omitempty"`
}
