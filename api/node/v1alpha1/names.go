package v1alpha1

// TaintPrefixes are the prefixes that the key of a rule's taint may have. The manager never removes a taint with another
// prefix. The second prefix is for managed clouds whose autoscaler cannot be configured with other startup taints.
var TaintPrefixes = []string{
	"readiness.k8s.io/",
	"startup-taint.cluster-autoscaler.kubernetes.io/",
}

const (
	// CRDName is the name of the CustomResourceDefinition of rules.
	CRDName = "nodereadinessrules.readiness.node.x-k8s.io"

	// Finalizer keeps a deleted rule until the manager has removed everything that the rule added to nodes.
	Finalizer = "readiness.node.x-k8s.io/cleanup-taints"

	// CompletedPrefix and the rule's UID are the key of the completion record: an annotation on a node that a
	// bootstrap-only rule has released. Its value names the rule: {"rule-name":"<name>"}. The manager reads the older
	// form of the key, CompletedPrefix and the rule's name, and never writes it.
	CompletedPrefix = "readiness.k8s.io/bootstrap-completed-"

	// HoldPrefix and the rule's UID are the key of the ownership record: an annotation on a node whose taint the rule
	// added or adopted. The manager removes it with the taint, in the same PATCH.
	HoldPrefix = "readygate.dev/hold-"

	// MemoryPrefix and the rule's UID are the key of the annotation in which a rule with maxUnavailable or onDeadline
	// records the state of a node that it does not hold.
	MemoryPrefix = "readygate.dev/memory-"
)

// Types of the conditions in a rule's status.
const (
	// ConditionAccepted is True if the rule is valid and does not conflict with an older rule.
	ConditionAccepted = "Accepted"

	// ConditionEnforced is True if every selected node is as the rule requires: tainted exactly while its requirements
	// are not met.
	ConditionEnforced = "Enforced"

	// ConditionTaintedAtCreation is True if the API server adds the rule's taint to a selected node when the node is
	// created, so that no pod is scheduled to it before the release.
	ConditionTaintedAtCreation = "TaintedAtCreation"
)

// ConditionReportersTolerated is False if a DaemonSet that reports a condition of the rule does not tolerate the rule's
// taint: its pods never start on a held node, and the node stays held. The condition is absent if no DaemonSet is known
// to report a condition of the rule.
const ConditionReportersTolerated = "ReportersTolerated"

// Reasons of the condition ReportersTolerated.
const (
	// ReasonTolerated means that every DaemonSet that is known to report tolerates the taint.
	ReasonTolerated = "Tolerated"
	// ReasonDaemonSetBlocked means that some of these DaemonSets do not. The message names them.
	ReasonDaemonSetBlocked = "DaemonSetBlocked"
)

// ConditionSoleController is False while another controller of this API may be active: a lease named LeaseName is
// renewed in another namespace. It is absent otherwise, so that it costs no write in a cluster with one controller.
// Enforced does not depend on it: a tenant that may write leases in its namespace can make this condition False, and
// change nothing else. PodReadinessRule also has this condition.
const ConditionSoleController = "SoleController"

// Reasons of the condition SoleController.
const (
	// ReasonWaitingForLease is set while the manager waits for the lease of another controller, and
	// does not enforce the rule. The message names the namespace, which is one of
	// --leader-election-peer-namespaces.
	ReasonWaitingForLease = "WaitingForLease"
	// ReasonOtherLease is set while the manager enforces the rule although a lease is renewed in other
	// namespaces. The message names up to five, the manager's own among them.
	ReasonOtherLease = "OtherLease"
)

// Reasons of the condition Accepted.
const (
	// ReasonAccepted means that the manager enforces the rule.
	ReasonAccepted = "Accepted"

	// ReasonConflict means that an older rule manages the same taint on nodes that this rule can also select. The message
	// names the older rule. This rule has no effect.
	ReasonConflict = "Conflict"

	// ReasonInvalid means that the spec cannot be enforced. The message has the fields. This rule has no effect.
	ReasonInvalid = "Invalid"
)

// Reasons of the condition Enforced.
const (
	// ReasonEnforced means that every selected node is as the rule requires.
	ReasonEnforced = "Enforced"

	// ReasonProgressing means that the manager has not yet patched some of the nodes.
	ReasonProgressing = "Progressing"

	// ReasonWriteRefused means that the API server rejects the PATCH of some nodes. The message and status.failedNodes
	// have the errors.
	ReasonWriteRefused = "WriteRefused"

	// ReasonLimited means that some nodes stay released although their conditions are not met, because the rule already
	// holds spec.maxUnavailable nodes. The message names them.
	ReasonLimited = "Limited"

	// ReasonUnordered means that the rule holds and releases nodes without waiting for the rules of spec.dependsOn: the
	// rules depend on each other in a cycle, or there are too many.
	ReasonUnordered = "Unordered"

	// ReasonDryRun means that the rule is in dry run; status.dryRunResults has the preview.
	ReasonDryRun = "DryRun"

	// ReasonNotAccepted means that the rule has no effect because it is not Accepted.
	ReasonNotAccepted = "NotAccepted"

	// ReasonDeleting means that the rule is being deleted and that the manager has not yet cleaned up some nodes.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition TaintedAtCreation. It also has the reasons ReasonDryRun, ReasonNotAccepted, ReasonDeleting,
// ReasonWriteRefused (the API server rejects the admission policy) and ReasonProgressing (the manager added the rule to
// the policy a moment ago, and some API servers may not have observed it yet).
const (
	// ReasonPolicyActive means that the admission policy contains the rule: a selected node is created
	// with the taint.
	ReasonPolicyActive = "PolicyActive"

	// ReasonLabelNotSetByKubelet means that the rule selects nodes by a label that a kubelet may not set on
	// its own node, so that no node is created with it. The message has the next step.
	ReasonLabelNotSetByKubelet = "LabelNotSetByKubelet"

	// ReasonAPIMissing means that the API server does not serve MutatingAdmissionPolicy.
	ReasonAPIMissing = "APIMissing"

	// ReasonPolicyMissing means that the admission policy is not installed.
	ReasonPolicyMissing = "PolicyMissing"
	// ReasonBindingMissing means that the binding of the admission policy is not installed.
	ReasonBindingMissing = "BindingMissing"

	// ReasonPolicyForeign means that the admission policy is not the one that Readygate installs.
	ReasonPolicyForeign = "PolicyForeign"
	// ReasonBindingForeign means that the binding is not the one that Readygate installs.
	ReasonBindingForeign = "BindingForeign"

	// ReasonTooLarge means that the policy with all older rules has no room for this rule.
	ReasonTooLarge = "TooLarge"

	// ReasonPolicyOutdated means that an administrator applies the policy (the manager runs with
	// --manage-policies=false) and that the stored policy differs from what this rule requires. The
	// message names the difference and the command to run. The condition also has this reason while
	// the rule is being deleted or is a dry run and the stored policy still contains it.
	ReasonPolicyOutdated = "PolicyOutdated"
)

// Reporter is the reporting controller of every event. Every implementation of this API uses the same name.
const Reporter = "node-readiness-controller"

// Events on a node (Normal), with their action.
const (
	EventTaintAdded   = "TaintAdded"
	ActionAddTaint    = "AddTaint"
	EventTaintRemoved = "TaintRemoved"
	ActionRemoveTaint = "RemoveTaint"
	EventTaintAdopted = "TaintAdopted"
	ActionAdoptTaint  = "AdoptTaint"
)

// Warning events, with their action. Each requires an action of a user.
const (
	// EventConflict is on a rule that is not accepted because of an older rule.
	EventConflict = "Conflict"
	// EventInvalid is on a rule that is not accepted because of its own spec.
	EventInvalid = "Invalid"
	// ActionAccept is the action of EventConflict and EventInvalid.
	ActionAccept = "AcceptRule"

	// EventPolicyOutdated is on a rule that the stored admission policy does not match, where an
	// administrator applies the policy.
	EventPolicyOutdated = "PolicyOutdated"
	// ActionApplyPolicy is the action of EventPolicyOutdated: an administrator must apply the policy.
	ActionApplyPolicy = "ApplyPolicy"

	// EventLimited is on a rule that leaves nodes released because of spec.maxUnavailable.
	EventLimited = "Limited"
	// ActionLimit is the action of EventLimited.
	ActionLimit = "LimitRule"

	// EventStuck is on a node that has been held for longer than spec.progressDeadlineSeconds.
	EventStuck = "Stuck"
	// EventDeadlineReleased is on a node that the manager released for this reason (onDeadline: Release).
	EventDeadlineReleased = "DeadlineReleased"
	// ActionAwait is the action of EventStuck.
	ActionAwait = "AwaitConditions"

	// EventWriteRefused is on a node whose PATCH the API server rejects.
	EventWriteRefused = "WriteRefused"
	// ActionWriteNode is the action of EventWriteRefused.
	ActionWriteNode = "WriteNode"

	// EventUnlistedRecord is on a node that has an ownership record that no rule wrote. The manager leaves the record and
	// its taint as they are.
	EventUnlistedRecord = "UnlistedRecord"
	// ActionKeepRecord is the action of EventUnlistedRecord.
	ActionKeepRecord = "KeepRecord"
)

// LeaseName is the name of the lease of the active controller. Every implementation of this API uses the same name, each
// in its own namespace.
const LeaseName = "ba65f13e.readiness.node.x-k8s.io"

// OtherNamespace is the default namespace of kubernetes-sigs/node-readiness-controller, another controller of this API.
const OtherNamespace = "nrr-system"
