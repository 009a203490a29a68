package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxListedNodes bounds each per-node list in a rule's status. The counts in
// status.summary are always complete.
const MaxListedNodes = 100

// NodeReadinessRuleStatus is the observed state of a rule. Its size does not
// grow with the cluster: the lists of nodes are truncated, held nodes first.
// They are atomic, because the owner of each entry of another list type would
// be stored in managedFields.
type NodeReadinessRuleStatus struct {
	// observedGeneration is the generation of the spec that this status is for.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule. Accepted: the rule is valid and does not conflict
	// with an older rule. Enforced: every selected node is as the rule requires.
	// TaintedAtCreation: a selected node is created with the taint.
	// ReportersTolerated: the DaemonSets that report conditions of the rule
	// tolerate its taint; absent if no such DaemonSet is known. SoleController:
	// False while another controller of this API renews its lease; absent
	// otherwise.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary counts all nodes that the rule selects.
	//
	// +optional
	Summary *RuleSummary `json:"summary,omitempty"`

	// listsTruncated is true if appliedNodes, failedNodes or nodeEvaluations are
	// truncated to 100 nodes, held nodes first. The counts in summary are
	// complete. Absent means false.
	//
	// +optional
	ListsTruncated bool `json:"listsTruncated,omitempty"`

	// takenOverAt is when the manager first observed the rule. Completion records
	// of the older form (named after the rule) count only on nodes that were
	// created before this time.
	//
	// +optional
	TakenOverAt *metav1.Time `json:"takenOverAt,omitempty"`

	// dryRunSince is when the manager first observed that spec.dryRun is true.
	// Nodes that were held before stay held. Nodes that were created with the
	// taint later, by an API server that had not observed the change yet, are
	// released. Absent if spec.dryRun is false.
	//
	// +optional
	DryRunSince *metav1.Time `json:"dryRunSince,omitempty"`

	// appliedNodes are the selected nodes that are as the rule requires; at most
	// 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	AppliedNodes []string `json:"appliedNodes,omitempty"`

	// failedNodes are the selected nodes whose PATCH the API server rejects, each
	// with the error; at most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	FailedNodes []NodeFailure `json:"failedNodes,omitempty"`

	// limitedNodes are the selected nodes that stay released although their
	// conditions are not met, because of spec.maxUnavailable; at most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	LimitedNodes []string `json:"limitedNodes,omitempty"`

	// nodeEvaluations compare the conditions of single nodes with the rule; at
	// most 100 nodes, held nodes first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	NodeEvaluations []NodeEvaluation `json:"nodeEvaluations,omitempty"`

	// dryRunResults is what the rule would do to the current nodes. Absent if
	// spec.dryRun is false.
	//
	// +optional
	DryRunResults *DryRunResults `json:"dryRunResults,omitempty"`
}

// RuleSummary counts the nodes that a rule selects.
type RuleSummary struct {
	// selected is the number of nodes that match the rule's nodeSelector.
	Selected int32 `json:"selected"`
	// held is the number of selected nodes that the rule holds now.
	Held int32 `json:"held"`
	// released is the number of selected nodes that the rule does not hold.
	Released int32 `json:"released"`
	// failed is the number of selected nodes whose PATCH the API server rejects.
	Failed int32 `json:"failed"`
	// stuck is the number of selected nodes that the rule has held for longer
	// than spec.progressDeadlineSeconds.
	//
	// +optional
	Stuck int32 `json:"stuck,omitempty"`
	// limited is the number of selected nodes that stay released although
	// their conditions are not met, because of spec.maxUnavailable.
	//
	// +optional
	Limited int32 `json:"limited,omitempty"`
}

// NodeFailure is a node whose PATCH the API server rejects, and the error.
type NodeFailure struct {
	// nodeName is the name of the node.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`
	// reason of the error in CamelCase, e.g. Forbidden or Invalid.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// message of the error that the API server returned.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`
	// lastEvaluationTime is when the PATCH failed.
	LastEvaluationTime metav1.Time `json:"lastEvaluationTime"`
}

// TaintStatus is whether a node has the rule's taint.
// +kubebuilder:validation:Enum=Present;Absent
type TaintStatus string

const (
	// TaintStatusPresent means that the node has the taint.
	TaintStatusPresent TaintStatus = "Present"
	// TaintStatusAbsent means that the node does not have the taint.
	TaintStatusAbsent TaintStatus = "Absent"
)

// NodeEvaluation is the result of a rule for one node.
type NodeEvaluation struct {
	// nodeName is the name of the node.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`
	// conditionResults compare each condition of the rule with the node's.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	ConditionResults []ConditionEvaluationResult `json:"conditionResults"`
	// taintStatus is whether the node has the rule's taint.
	TaintStatus TaintStatus `json:"taintStatus"`
	// lastEvaluationTime is when this result last changed.
	LastEvaluationTime metav1.Time `json:"lastEvaluationTime"`
}

// ConditionEvaluationResult compares one condition of a node with what the
// rule requires.
type ConditionEvaluationResult struct {
	// type of the condition.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`
	// currentStatus is the status that counts: the status of the node's
	// condition. If the node has no such condition: defaultStatus, or Unknown
	// without one.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	CurrentStatus corev1.ConditionStatus `json:"currentStatus"`
	// requiredStatus is the status that the rule requires.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`
	// defaultStatus is the rule's default for a node without the condition.
	// Absent if the rule has none.
	//
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	DefaultStatus corev1.ConditionStatus `json:"defaultStatus,omitempty"`
}

// DryRunResults is what a dry-run rule would do to the current nodes.
type DryRunResults struct {
	// affectedNodes is the number of nodes that the rule selects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AffectedNodes int32 `json:"affectedNodes"`
	// taintsToAdd is the number of nodes that would get the taint.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TaintsToAdd int32 `json:"taintsToAdd"`
	// taintsToRemove is the number of nodes that would lose the taint.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TaintsToRemove int32 `json:"taintsToRemove"`
	// riskyOperations is the number of selected nodes that do not have one of
	// the rule's conditions: possibly no component reports it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RiskyOperations int32 `json:"riskyOperations"`
	// summary is the same in one sentence.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Summary string `json:"summary"`
}
