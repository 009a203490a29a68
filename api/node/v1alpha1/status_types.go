package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxListedNodes bounds each per-node list in a rule's status. The counts in
// status.summary are always complete.
const MaxListedNodes = 100

// NodeReadinessRuleStatus is what became of a rule. Its size does not grow
// with the cluster: the per-node lists are cut, held nodes first, and atomic:
// who owns each single entry would be stored in the object too.
type NodeReadinessRuleStatus struct {
	// observedGeneration is the generation of the spec that this status speaks
	// of.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the rule: Accepted (valid, and in conflict with no older
	// rule), Enforced (every selected node is as the rule wants it),
	// TaintedAtCreation (a selected node is created with the taint),
	// ReportersTolerated (what reports for the rule tolerates its taint; only if
	// something is known to) and SoleController (only while it is False: another
	// controller of this API renews its lease), each with its reason.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary counts all nodes that the rule selects.
	//
	// +optional
	Summary *RuleSummary `json:"summary,omitempty"`

	// listsTruncated says that appliedNodes, failedNodes or nodeEvaluations are
	// cut at 100 nodes, held nodes first. The counts in summary are complete.
	//
	// +optional
	ListsTruncated bool `json:"listsTruncated,omitempty"`

	// takenOverAt is when Readygate first saw the rule. Completion records of
	// the older form (named after the rule) count only on nodes that were
	// created before.
	//
	// +optional
	TakenOverAt *metav1.Time `json:"takenOverAt,omitempty"`

	// dryRunSince is when Readygate first saw that spec.dryRun is true. Nodes
	// that are held since before stay held; nodes that were created held after
	// it, because an API server had not seen it yet, are released.
	//
	// +optional
	DryRunSince *metav1.Time `json:"dryRunSince,omitempty"`

	// appliedNodes are the selected nodes that are as the rule wants them; at
	// most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	AppliedNodes []string `json:"appliedNodes,omitempty"`

	// failedNodes are the selected nodes that the API server refuses to write,
	// and why; at most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	FailedNodes []NodeFailure `json:"failedNodes,omitempty"`

	// limitedNodes are the selected nodes that stay released although their
	// conditions do not hold, because of spec.maxUnavailable; at most 100.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	LimitedNodes []string `json:"limitedNodes,omitempty"`

	// nodeEvaluations say for single nodes how each condition compares; at most
	// 100, held nodes first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	NodeEvaluations []NodeEvaluation `json:"nodeEvaluations,omitempty"`

	// dryRunResults is what the rule would do to the nodes as they are now.
	// Present only while spec.dryRun is true.
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
	// failed is the number of selected nodes that the API server refuses to
	// write.
	Failed int32 `json:"failed"`
	// stuck is the number of selected nodes that the rule has held for longer
	// than spec.progressDeadlineSeconds.
	//
	// +optional
	Stuck int32 `json:"stuck,omitempty"`
	// limited is the number of selected nodes that stay released although
	// their conditions do not hold, because of spec.maxUnavailable.
	//
	// +optional
	Limited int32 `json:"limited,omitempty"`
}

// NodeFailure is a node that could not be written, and why.
type NodeFailure struct {
	// nodeName is the name of the node.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName"`
	// reason is one CamelCase word, e.g. Forbidden or Invalid.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// message is what the API server said.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`
	// lastEvaluationTime is when it failed.
	LastEvaluationTime metav1.Time `json:"lastEvaluationTime"`
}

// TaintStatus says whether a node carries the rule's taint.
// +kubebuilder:validation:Enum=Present;Absent
type TaintStatus string

const (
	// TaintStatusPresent says that the node carries the taint.
	TaintStatusPresent TaintStatus = "Present"
	// TaintStatusAbsent says that the node does not carry the taint.
	TaintStatusAbsent TaintStatus = "Absent"
)

// NodeEvaluation is a rule's answer for one node.
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
	// taintStatus says whether the node carries the rule's taint.
	TaintStatus TaintStatus `json:"taintStatus"`
	// lastEvaluationTime is when this answer last changed.
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
	// currentStatus is the status that counts: the node's, else the default,
	// else Unknown.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	CurrentStatus corev1.ConditionStatus `json:"currentStatus"`
	// requiredStatus is the status that the rule requires.
	//
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`
	// defaultStatus is the rule's default for a node without the condition, if
	// it has one.
	//
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	DefaultStatus corev1.ConditionStatus `json:"defaultStatus,omitempty"`
}

// DryRunResults is what a dry-run rule would do to the nodes as they are
// now.
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
	// riskyOperations is the number of selected nodes on which a condition that
	// the rule names does not exist at all: nobody may be reporting it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RiskyOperations int32 `json:"riskyOperations"`
	// summary says the same in a sentence.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Summary string `json:"summary"`
}
