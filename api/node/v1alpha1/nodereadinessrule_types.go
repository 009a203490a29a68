package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeReadinessRule says: nodes like these keep this taint until these node
// conditions hold.
//
// Example: keep pods away from new workers until the CNI has reported that
// it is ready.
//
//	apiVersion: readiness.node.x-k8s.io/v1alpha1
//	kind: NodeReadinessRule
//	metadata:
//	  name: network
//	spec:
//	  conditions:
//	  - type: network.k8s.io/CalicoReady
//	    requiredStatus: "True"
//	  taint:
//	    key: readiness.k8s.io/NetworkReady
//	    value: pending
//	    effect: NoSchedule
//	  enforcementMode: bootstrap-only
//	  nodeSelector:
//	    matchLabels:
//	      kubernetes.io/os: linux
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=nrr
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.enforcementMode`
// +kubebuilder:selectablefield:JSONPath=`.spec.taint.key`
// +kubebuilder:selectablefield:JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.enforcementMode`,description="bootstrap-only or continuous."
// +kubebuilder:printcolumn:name="Taint",type=string,JSONPath=`.spec.taint.key`,description="Key of the taint that held nodes carry."
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.taint.effect`,description="Effect of the taint."
// +kubebuilder:printcolumn:name="DryRun",type=boolean,JSONPath=`.spec.dryRun`,description="Whether the rule only previews."
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.summary.held`,description="Nodes that the rule holds now."
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.summary.selected`,description="Nodes that the rule selects."
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`,description="Enforced, or why not."
// +kubebuilder:printcolumn:name="Births",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="BirthsCovered")].reason`,description="Covered if nodes are created with the taint, or why not."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeReadinessRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the rule asks for. Only dryRun can be changed later; for
	// anything else delete the rule and create another.
	Spec NodeReadinessRuleSpec `json:"spec"`

	// status is what became of it. Written by the manager only.
	// +optional
	Status NodeReadinessRuleStatus `json:"status,omitzero"`
}

// NodeReadinessRuleList is a list of rules.
//
// +kubebuilder:object:root=true
type NodeReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeReadinessRule `json:"items"`
}

// NodeReadinessRuleSpec is what a rule asks for.
//
// +kubebuilder:validation:XValidation:rule="(has(self.conditionPolicy) ? self.conditionPolicy : 'allOf') == (has(oldSelf.conditionPolicy) ? oldSelf.conditionPolicy : 'allOf')",fieldPath=".conditionPolicy",message="conditionPolicy is immutable (absent means allOf): delete this rule and create one with the policy you want"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || !has(self.conditionPolicy) || self.conditionPolicy != 'anyOf'",fieldPath=".conditionPolicy",message="anyOf cannot be used with enforcementMode bootstrap-only: use allOf, or enforcementMode continuous"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || self.conditions.all(c, !has(c.defaultStatus))",fieldPath=".conditions",message="defaultStatus cannot be used with enforcementMode bootstrap-only, where a condition that was never reported must hold the node: remove defaultStatus, or use enforcementMode continuous"
type NodeReadinessRuleSpec struct {
	// conditions are the requirements: node conditions that must hold before a
	// node is released. 1 to 32, each type once. Immutable.
	//
	// +required
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() == oldSelf.size() && self.all(c, oldSelf.exists(o, o.type == c.type && o.requiredStatus == c.requiredStatus && (has(o.defaultStatus) ? o.defaultStatus : 'absent') == (has(c.defaultStatus) ? c.defaultStatus : 'absent')))",message="conditions is immutable: delete this rule and create one with the conditions you want"
	Conditions []ConditionRequirement `json:"conditions"`

	// conditionPolicy says how many of the conditions must hold: allOf (meant
	// when absent) or anyOf, which cannot be used with enforcementMode
	// bootstrap-only. Immutable.
	//
	// +optional
	ConditionPolicy ConditionPolicy `json:"conditionPolicy,omitempty"`

	// enforcementMode says for how long the rule looks at a node. With
	// bootstrap-only the first release is final and remembered on the node. With
	// continuous a node is held again whenever the conditions stop to hold.
	// Immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcementMode is immutable: delete this rule and create one with the mode you want"
	EnforcementMode EnforcementMode `json:"enforcementMode"`

	// taint is what a held node carries. Pods that do not tolerate it stay away.
	// Immutable.
	//
	// +required
	Taint Taint `json:"taint"`

	// nodeSelector selects nodes by their labels. It must not be empty; for
	// every Linux node use matchLabels {kubernetes.io/os: linux}. Immutable.
	//
	// +required
	NodeSelector NodeSelector `json:"nodeSelector"`

	// dryRun makes the rule a preview: status.dryRunResults says what it would
	// do to the nodes as they are now, and no node is touched. Absent means
	// false.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// ConditionRequirement is one node condition and the status it must have.
type ConditionRequirement struct {
	// type of the node condition, e.g. network.k8s.io/CalicoReady.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// requiredStatus is the status that the condition must have: True, False or
	// Unknown.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`

	// defaultStatus is the status that counts while the node has no such
	// condition: True, False or Unknown. Absent means Unknown. Cannot be used
	// with enforcementMode bootstrap-only.
	//
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	DefaultStatus corev1.ConditionStatus `json:"defaultStatus,omitempty"`
}

// ConditionPolicy says how many requirements must be met.
// +kubebuilder:validation:Enum=allOf;anyOf
type ConditionPolicy string

const (
	// ConditionPolicyAllOf releases a node when every requirement is met.
	ConditionPolicyAllOf ConditionPolicy = "allOf"
	// ConditionPolicyAnyOf releases a node when one requirement is met.
	ConditionPolicyAnyOf ConditionPolicy = "anyOf"
)

// EnforcementMode says for how long a rule looks at a node.
// +kubebuilder:validation:Enum=bootstrap-only;continuous
type EnforcementMode string

const (
	// EnforcementModeBootstrapOnly stops at the first release.
	EnforcementModeBootstrapOnly EnforcementMode = "bootstrap-only"
	// EnforcementModeContinuous goes on for the life of the node.
	EnforcementModeContinuous EnforcementMode = "continuous"
)

// Taint is the taint of a rule. Its identity is key and effect; a taint with
// the same key and effect and another value is the same taint and is left as
// it is.
//
// +kubebuilder:validation:XValidation:rule="self.key == oldSelf.key",fieldPath=".key",message="taint key is immutable: delete this rule and create one with the taint you want"
// +kubebuilder:validation:XValidation:rule="self.effect == oldSelf.effect",fieldPath=".effect",message="taint effect is immutable: delete this rule and create one with the taint you want"
// +kubebuilder:validation:XValidation:rule=`(has(self.value) ? self.value : "") == (has(oldSelf.value) ? oldSelf.value : "")`,fieldPath=".value",message="taint value is immutable: delete this rule and create one with the taint you want"
type Taint struct {
	// key of the taint: a prefix, '/' and a name, e.g.
	// readiness.k8s.io/NetworkReady. The prefix is readiness.k8s.io, or
	// startup-taint.cluster-autoscaler.kubernetes.io where an autoscaler must
	// recognise it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.startsWith('readiness.k8s.io/') || self.startsWith('startup-taint.cluster-autoscaler.kubernetes.io/')",message="taint key must start with 'readiness.k8s.io/' or 'startup-taint.cluster-autoscaler.kubernetes.io/', e.g. 'readiness.k8s.io/NetworkReady'"
	// +kubebuilder:validation:XValidation:rule="self.split('/').size() == 2",message="taint key must have exactly one '/' separator, e.g. 'readiness.k8s.io/NetworkReady'"
	// +kubebuilder:validation:XValidation:rule="self.split('/').size() != 2 || (self.split('/')[1].size() >= 1 && self.split('/')[1].size() <= 63)",message="taint key name part (after the '/') must be 1-63 characters, e.g. 'readiness.k8s.io/NetworkReady'"
	// +kubebuilder:validation:XValidation:rule="self.split('/').size() != 2 || self.split('/')[1].matches('^[-A-Za-z0-9_.]*$')",message="taint key name part must consist of alphanumeric characters, '-', '_' or '.', e.g. 'readiness.k8s.io/NetworkReady'"
	// +kubebuilder:validation:XValidation:rule="self.split('/').size() != 2 || self.split('/')[1].matches('^([A-Za-z0-9](.*[A-Za-z0-9])?)?$')",message="taint key name part must start and end with an alphanumeric character, e.g. 'readiness.k8s.io/NetworkReady'"
	Key string `json:"key"`

	// value of the taint, e.g. pending. Absent means empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="taint value must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, e.g. 'pending'"
	Value string `json:"value,omitempty"`

	// effect of the taint on pods that do not tolerate it: NoSchedule,
	// PreferNoSchedule or NoExecute. NoExecute also evicts running pods: with
	// enforcementMode continuous one failed condition empties the node. Prefer
	// NoSchedule.
	//
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// timeAdded is accepted because core taints have it, and ignored.
	//
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// NodeSelector selects nodes by their labels, as a LabelSelector does: every
// label in matchLabels and every entry of matchExpressions must match.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="nodeSelector must not be empty: an empty selector would hold every node, control plane included; name at least one label, e.g. matchLabels {kubernetes.io/os: linux}"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeSelector is immutable: delete this rule and create one with the selector you want"
type NodeSelector struct {
	// matchLabels are labels that a node must have, each with exactly this
	// value.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() >= 1 && k.size() <= 317)",message="label key must be 1-317 characters, e.g. 'node-role.kubernetes.io/worker'"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels, all of which must hold.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NodeSelectorRequirement is a requirement on one label.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",fieldPath=".values",message="values must not be empty when operator is In or NotIn: add values, or use Exists or DoesNotExist"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",fieldPath=".values",message="values must be empty when operator is Exists or DoesNotExist: remove them, or use In or NotIn"
type NodeSelectorRequirement struct {
	// key of the label, e.g. topology.kubernetes.io/zone.
	//
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253",message="label key must have at most 253 characters before its '/', e.g. 'node-role.kubernetes.io/worker'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="label key must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'node-role.kubernetes.io/worker'"
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist. A node without the label
	// matches NotIn and DoesNotExist.
	//
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values are compared with the label's value. Needed for In and NotIn,
	// forbidden for Exists and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Values []LabelValue `json:"values,omitempty"`
}

// LabelValue is the value of a label; it may be empty. Null, as in a manifest
// with nothing after the colon, is empty too.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends, e.g. 'workers'"
type LabelValue string
