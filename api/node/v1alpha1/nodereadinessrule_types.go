package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeReadinessRule keeps a taint on the selected nodes until the required
// node conditions are met.
//
// Example: hold new Linux nodes until a reporter has set the condition
// network.k8s.io/CalicoReady to True.
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
// +kubebuilder:metadata:annotations="readygate.dev/minimum-kubernetes-version=1.33"
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.enforcementMode`
// +kubebuilder:selectablefield:JSONPath=`.spec.taint.key`
// +kubebuilder:selectablefield:JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.enforcementMode`,description="bootstrap-only or continuous."
// +kubebuilder:printcolumn:name="Taint",type=string,JSONPath=`.spec.taint.key`,description="Key of the taint on held nodes."
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.taint.effect`,description="Effect of the taint."
// +kubebuilder:printcolumn:name="DryRun",type=boolean,JSONPath=`.spec.dryRun`,description="true if the rule only previews and changes no node."
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.summary.held`,description="Number of selected nodes that the rule holds now."
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.summary.selected`,description="Number of nodes that the rule selects."
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`,description="Reason of the condition Enforced."
// +kubebuilder:printcolumn:name="At-Creation",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="TaintedAtCreation")].reason`,description="Reason of the condition TaintedAtCreation: PolicyActive if selected nodes are created with the taint."
// +kubebuilder:printcolumn:name="Stuck",type=integer,priority=1,JSONPath=`.status.summary.stuck`,description="Number of nodes that have been held for longer than progressDeadlineSeconds."
// +kubebuilder:printcolumn:name="Reporters",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ReportersTolerated")].reason`,description="Reason of the condition ReportersTolerated: Tolerated if every DaemonSet that is known to report tolerates the taint."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeReadinessRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. The fields conditions (except maxAge),
	// conditionPolicy, enforcementMode, taint and nodeSelector are immutable: to
	// change one, delete the rule and create another.
	Spec NodeReadinessRuleSpec `json:"spec"`

	// status is the observed state. Only the manager writes it.
	// +optional
	Status NodeReadinessRuleStatus `json:"status,omitzero"`
}

// NodeReadinessRuleList is a list of NodeReadinessRules.
//
// +kubebuilder:object:root=true
type NodeReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeReadinessRule `json:"items"`
}

// NodeReadinessRuleSpec is the desired state of a rule.
//
// +kubebuilder:validation:XValidation:rule="(has(self.conditionPolicy) ? self.conditionPolicy : 'allOf') == (has(oldSelf.conditionPolicy) ? oldSelf.conditionPolicy : 'allOf')",fieldPath=".conditionPolicy",message="conditionPolicy is immutable (absent means allOf): delete this rule and create one with the policy you want"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || !has(self.conditionPolicy) || self.conditionPolicy != 'anyOf'",fieldPath=".conditionPolicy",message="anyOf cannot be used with enforcementMode bootstrap-only: use allOf, or enforcementMode continuous"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode != 'bootstrap-only' || self.conditions.all(c, !has(c.defaultStatus))",fieldPath=".conditions",message="defaultStatus cannot be used with enforcementMode bootstrap-only, where a condition that was never reported must hold the node: remove defaultStatus, or use enforcementMode continuous"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode == 'continuous' || !has(self.maxUnavailable)",fieldPath=".maxUnavailable",message="maxUnavailable cannot be used with enforcementMode bootstrap-only: remove maxUnavailable, or use enforcementMode continuous"
// +kubebuilder:validation:XValidation:rule="self.enforcementMode == 'bootstrap-only' || !has(self.bootstrapScope) || self.bootstrapScope == 'Node'",fieldPath=".bootstrapScope",message="bootstrapScope Boot cannot be used with enforcementMode continuous, which evaluates a node for its whole life: remove bootstrapScope, or use enforcementMode bootstrap-only"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrapScope) || self.bootstrapScope == 'Node' || self.taint.effect != 'NoExecute'",fieldPath=".bootstrapScope",message="bootstrapScope Boot cannot be used with the taint effect NoExecute: the rule would evict the pods of a node whenever the node stops being Ready: use NoSchedule"
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || !has(self.minReadySeconds) || self.progressDeadlineSeconds > self.minReadySeconds",fieldPath=".progressDeadlineSeconds",message="progressDeadlineSeconds must be greater than minReadySeconds, otherwise every node would exceed the deadline: increase progressDeadlineSeconds or decrease minReadySeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.onDeadline) || has(self.progressDeadlineSeconds)",fieldPath=".onDeadline",message="onDeadline has no effect without progressDeadlineSeconds: set progressDeadlineSeconds, or remove onDeadline"
type NodeReadinessRuleSpec struct {
	// conditions are the requirements: the node conditions that must be met
	// before a node is released. 1 to 32 entries, each type once. Immutable
	// except maxAge.
	//
	// +required
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.size() == oldSelf.size() && self.all(c, oldSelf.exists(o, o.type == c.type && o.requiredStatus == c.requiredStatus && (has(o.defaultStatus) ? o.defaultStatus : 'absent') == (has(c.defaultStatus) ? c.defaultStatus : 'absent')))",message="conditions is immutable: delete this rule and create one with the conditions you want"
	Conditions []ConditionRequirement `json:"conditions"`

	// conditionPolicy is how many of the conditions must be met: allOf or anyOf.
	// Absent means allOf. anyOf cannot be used with enforcementMode
	// bootstrap-only. Immutable.
	//
	// +optional
	ConditionPolicy ConditionPolicy `json:"conditionPolicy,omitempty"`

	// enforcementMode is how long the rule applies to a node. With
	// bootstrap-only the first release is final, and the manager records it on
	// the node. With continuous a node is held again whenever the conditions are
	// not met. Immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="enforcementMode is immutable: delete this rule and create one with the mode you want"
	EnforcementMode EnforcementMode `json:"enforcementMode"`

	// taint is the taint on held nodes. Pods that do not tolerate it are not
	// scheduled there. Immutable.
	//
	// +required
	Taint Taint `json:"taint"`

	// nodeSelector selects nodes by their labels. It must not be empty. To select
	// every Linux node, use matchLabels {kubernetes.io/os: linux}. Immutable.
	//
	// +required
	NodeSelector NodeSelector `json:"nodeSelector"`

	// dryRun makes the rule a preview: the manager changes no node, and
	// status.dryRunResults has what the rule would do to the current nodes.
	// Absent means false.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// minReadySeconds is how long the conditions must have been met without
	// interruption before the manager releases a held node. Absent means 0: the
	// manager releases it at once.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// maxUnavailable is how many nodes in use a continuous rule may hold at the
	// same time: a number, or a percentage of the selected nodes in use, rounded
	// up, e.g. 10%. Further nodes stay released, and the condition Enforced
	// names them. A node counts as in use if the rule released it before, if it
	// is older than the rule, or if it was Ready and not held when the rule
	// first selected it. New nodes do not count. Absent means no limit.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 1000000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number of nodes from 0 to 1000000, e.g. 1, or a percentage from 0% to 100%, e.g. 10%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// bootstrapScope is what the first release of a bootstrap-only rule
	// completes. Node: the rule never holds the node again. Boot: the rule holds
	// the node again when it stops being Ready or has a new bootID, until the
	// conditions are met and were reported since that boot. Absent means Node.
	//
	// +optional
	BootstrapScope BootstrapScope `json:"bootstrapScope,omitempty"`

	// progressDeadlineSeconds is how long a node may be held, e.g. 900. A node
	// that is held longer is stuck: the manager emits a Warning event and counts
	// the node in status.summary.stuck and in a metric. Absent means no
	// deadline.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// onDeadline is what the manager does with a node that is stuck. Report keeps
	// the node held. Release removes the taint although the conditions are not
	// met. Absent means Report.
	//
	// +optional
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// dependsOn are the names of rules that must have released a node before
	// this rule changes it: until then a held node stays held and a released
	// node stays released. Names of rules that do not exist are ignored. If
	// rules depend on each other in a cycle, the youngest of them ignores
	// dependsOn and has the condition Enforced with the reason Unordered. Absent
	// means no dependency.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DependsOn []string `json:"dependsOn,omitempty"`

	// tolerations select DaemonSets that must run on held nodes. The API server
	// adds a toleration of the rule's taint to their pod templates when the
	// DaemonSets are created or changed. A reporter that does not tolerate the
	// taint never starts on a held node, and the node stays held. Absent means
	// that no toleration is added.
	//
	// +optional
	Tolerations *DaemonSetTolerations `json:"tolerations,omitempty"`
}

// DaemonSetTolerations selects DaemonSets by their labels, by the labels of
// their namespace, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.daemonSetSelector) || has(self.namespaceSelector)",message="tolerations must name a daemonSetSelector, a namespaceSelector or both, otherwise every DaemonSet would tolerate the taint, e.g. daemonSetSelector {matchLabels: {k8s-app: calico-node}}"
type DaemonSetTolerations struct {
	// daemonSetSelector selects by the labels of the DaemonSet itself, not of
	// its pods, e.g. k8s-app: calico-node. Absent means every DaemonSet of the
	// selected namespaces.
	//
	// +optional
	DaemonSetSelector *LabelSelector `json:"daemonSetSelector,omitempty"`

	// namespaceSelector selects by the labels of the namespace, e.g.
	// kubernetes.io/metadata.name: kube-system. Absent means every namespace.
	//
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
}

// LabelSelector selects objects by their labels: every label in matchLabels
// and every entry of matchExpressions must match.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="the selector must not be empty: name at least one label, or remove the selector"
type LabelSelector struct {
	// matchLabels are labels that an object must have, each with exactly this
	// value. Absent means no such requirement.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels. All of them must match. Absent
	// means no such requirement.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// BootstrapScope is what the first release of a bootstrap-only rule completes.
// +kubebuilder:validation:Enum=Node;Boot
type BootstrapScope string

const (
	// BootstrapScopeNode completes the node: the rule never holds it again.
	BootstrapScopeNode BootstrapScope = "Node"
	// BootstrapScopeBoot completes one boot of the node.
	BootstrapScopeBoot BootstrapScope = "Boot"
)

// DeadlineAction is what the manager does with a node that is held for longer
// than progressDeadlineSeconds.
// +kubebuilder:validation:Enum=Report;Release
type DeadlineAction string

const (
	// DeadlineReport keeps the node held.
	DeadlineReport DeadlineAction = "Report"
	// DeadlineRelease removes the taint.
	DeadlineRelease DeadlineAction = "Release"
)

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

	// maxAge is how old the condition's lastHeartbeatTime may be, e.g. 2m. A
	// condition with an older heartbeat, or without one, counts as Unknown: its
	// reporter may have stopped. At least 60s. The reporter must write heartbeats
	// several times within maxAge. Absent means no limit.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(h|m|s))+$') && duration(self) >= duration('60s')",message="maxAge must be a duration in h, m and s of at least 60s, e.g. 2m: each heartbeat of each node is a write"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// ConditionPolicy is how many requirements must be met.
// +kubebuilder:validation:Enum=allOf;anyOf
type ConditionPolicy string

const (
	// ConditionPolicyAllOf releases a node when every requirement is met.
	ConditionPolicyAllOf ConditionPolicy = "allOf"
	// ConditionPolicyAnyOf releases a node when one requirement is met.
	ConditionPolicyAnyOf ConditionPolicy = "anyOf"
)

// EnforcementMode is how long a rule applies to a node.
// +kubebuilder:validation:Enum=bootstrap-only;continuous
type EnforcementMode string

const (
	// EnforcementModeBootstrapOnly applies until the first release.
	EnforcementModeBootstrapOnly EnforcementMode = "bootstrap-only"
	// EnforcementModeContinuous applies for the whole life of the node.
	EnforcementModeContinuous EnforcementMode = "continuous"
)

// Taint is the taint of a rule. It is identified by key and effect: a taint
// with the same key and effect and another value is the same taint, and the
// manager does not change its value.
//
// +kubebuilder:validation:XValidation:rule="self.key == oldSelf.key",fieldPath=".key",message="taint key is immutable: delete this rule and create one with the taint you want"
// +kubebuilder:validation:XValidation:rule="self.effect == oldSelf.effect",fieldPath=".effect",message="taint effect is immutable: delete this rule and create one with the taint you want"
// +kubebuilder:validation:XValidation:rule=`(has(self.value) ? self.value : "") == (has(oldSelf.value) ? oldSelf.value : "")`,fieldPath=".value",message="taint value is immutable: delete this rule and create one with the taint you want"
type Taint struct {
	// key of the taint: a prefix, '/' and a name, e.g.
	// readiness.k8s.io/NetworkReady. The prefix is readiness.k8s.io, or
	// startup-taint.cluster-autoscaler.kubernetes.io if an autoscaler must
	// recognize the taint.
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
	// PreferNoSchedule or NoExecute. Prefer NoSchedule. NoExecute also evicts
	// running pods: with enforcementMode continuous, one failed condition evicts
	// all pods of the node that do not tolerate the taint.
	//
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// timeAdded is accepted because core taints have this field. The manager
	// ignores it.
	//
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// NodeSelector selects nodes by their labels: every label in matchLabels and
// every entry of matchExpressions must match.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="nodeSelector must not be empty, otherwise the rule would hold every node, including the control plane: name at least one label, e.g. matchLabels {kubernetes.io/os: linux}"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeSelector is immutable: delete this rule and create one with the selector you want"
type NodeSelector struct {
	// matchLabels are labels that a node must have, each with exactly this
	// value, e.g. kubernetes.io/os: linux. Absent means no such requirement.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() >= 1 && k.size() <= 317)",message="label key must be 1-317 characters, e.g. 'node-role.kubernetes.io/worker'"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels. All of them must match. Absent
	// means no such requirement.
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

	// values are compared with the label's value. Required for In and NotIn,
	// forbidden for Exists and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Values []LabelValue `json:"values,omitempty"`
}

// LabelValue is the value of a label. It may be empty. Null, as in a manifest
// with nothing after the colon, also means empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends, e.g. 'workers'"
type LabelValue string
