package v1alpha1

// TaintPrefixes are the key prefixes a rule's taint may have, and the only ones that are
// ever removed from a node. The second is for managed clouds whose autoscaler cannot be
// told about other startup taints.
var TaintPrefixes = []string{
	"readiness.k8s.io/",
	"startup-taint.cluster-autoscaler.kubernetes.io/",
}

const (
	// CRDName is the name of the CustomResourceDefinition of rules.
	CRDName = "nodereadinessrules.readiness.node.x-k8s.io"

	// Finalizer keeps a deleted rule until no node carries anything that it put there.
	Finalizer = "readiness.node.x-k8s.io/cleanup-taints"

	// CompletedPrefix and the rule's UID are the annotation on a node that says that a
	// bootstrap-only rule has released the node once. Its value names the rule:
	// {"rule-name":"<name>"}. The older form, CompletedPrefix and the rule's name, is read
	// and never written.
	CompletedPrefix = "readiness.k8s.io/bootstrap-completed-"

	// HoldPrefix and the rule's UID are the annotation on a node that says that the rule put
	// or adopted its taint there. It lives exactly as long as the hold.
	HoldPrefix = "readygate.dev/hold-"

	// MemoryPrefix and the rule's UID are the annotation on a node that says what a rule with
	// maxUnavailable or onDeadline remembers of a node that it does not hold.
	MemoryPrefix = "readygate.dev/memory-"
)

// Types of the conditions in a rule's status.
const (
	// ConditionAccepted is True when the rule is valid and conflicts with no older rule.
	ConditionAccepted = "Accepted"

	// ConditionEnforced is True when every selected node carries the rule's taint exactly
	// while its requirements are not met.
	ConditionEnforced = "Enforced"

	// ConditionTaintedAtCreation is True when the API server adds the rule's taint to a selected
	// node as the node is created, so that no pod is scheduled to it before the release.
	ConditionTaintedAtCreation = "TaintedAtCreation"
)

// ConditionReportersTolerated is False when a DaemonSet that reports a condition of the rule does not
// tolerate its taint: it never starts on a held node, and the node stays held. It is there only
// if such a DaemonSet is known at all.
const ConditionReportersTolerated = "ReportersTolerated"

// Reasons of the condition ReportersTolerated.
const (
	// ReasonTolerated says that every DaemonSet that is known to report tolerates the taint.
	ReasonTolerated = "Tolerated"
	// ReasonDaemonSetBlocked says that some do not. The message names them.
	ReasonDaemonSetBlocked = "DaemonSetBlocked"
)

// ConditionSoleController is False while another controller of this API may be active: a lease LeaseName
// is renewed in another namespace. It is absent otherwise, so that it costs no write in a cluster with one
// controller. Enforced does not change with it: a tenant that may write leases in its namespace can make
// this condition False, and nothing else. PodReadinessRule has it too.
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
	// ReasonAccepted says that the rule takes part.
	ReasonAccepted = "Accepted"

	// ReasonConflict says that an older rule manages the same taint on nodes that this
	// rule can select too. The message names it. This rule does nothing.
	ReasonConflict = "Conflict"

	// ReasonInvalid says that the spec cannot be enforced, and why. This rule does nothing.
	ReasonInvalid = "Invalid"
)

// Reasons of the condition Enforced.
const (
	// ReasonEnforced says that every selected node is as the rule wants it.
	ReasonEnforced = "Enforced"

	// ReasonProgressing says that some nodes are still to be written.
	ReasonProgressing = "Progressing"

	// ReasonWriteRefused says that the API server refuses to write some nodes. The
	// message and status.failedNodes say why.
	ReasonWriteRefused = "WriteRefused"

	// ReasonLimited says that some nodes stay released although their conditions do not hold,
	// because spec.maxUnavailable others are away. The message names them.
	ReasonLimited = "Limited"

	// ReasonUnordered says that the rule holds and releases nodes, but not after the rules of
	// spec.dependsOn: they depend on each other in a cycle, or there are too many.
	ReasonUnordered = "Unordered"

	// ReasonDryRun says that the rule only previews; status.dryRunResults has the preview.
	ReasonDryRun = "DryRun"

	// ReasonNotAccepted says that the rule does nothing because it is not Accepted.
	ReasonNotAccepted = "NotAccepted"

	// ReasonDeleting says that the rule is being deleted and some nodes are still to be
	// cleaned up.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition TaintedAtCreation. It also has the reasons ReasonDryRun,
// ReasonNotAccepted, ReasonDeleting, ReasonWriteRefused (the policy cannot be written) and
// ReasonProgressing: the rule was put into the policy a moment ago, and some API server may not have
// observed it yet.
const (
	// ReasonPolicyActive means that the admission policy contains the rule: a selected node is created
	// with the taint.
	ReasonPolicyActive = "PolicyActive"

	// ReasonLabelNotSetByKubelet means that the rule selects nodes by a label that a kubelet may not set on
	// its own node, so that no node is created with it. The message has the next step.
	ReasonLabelNotSetByKubelet = "LabelNotSetByKubelet"

	// ReasonAPIMissing says that the cluster has no MutatingAdmissionPolicy.
	ReasonAPIMissing = "APIMissing"

	// ReasonPolicyMissing and ReasonBindingMissing say that the policy or its binding is not
	// installed.
	ReasonPolicyMissing  = "PolicyMissing"
	ReasonBindingMissing = "BindingMissing"

	// ReasonPolicyForeign and ReasonBindingForeign say that the policy or its binding is not
	// the one that Readygate installs.
	ReasonPolicyForeign  = "PolicyForeign"
	ReasonBindingForeign = "BindingForeign"

	// ReasonTooLarge says that the rule does not fit into the policy beside older rules.
	ReasonTooLarge = "TooLarge"

	// ReasonPolicyOutdated means that an administrator applies the policy (the manager runs with
	// --manage-policies=false) and that the stored policy differs from what this rule requires. The
	// message names the difference and the command to run. The condition also has this reason while
	// the rule is being deleted or is a dry run and the stored policy still contains it.
	ReasonPolicyOutdated = "PolicyOutdated"
)

// Reporter is the reporting controller of every event, as in every implementation of
// this API.
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

// Events that ask somebody to act (Warning), with their action.
const (
	// EventConflict is on a rule that is not accepted because of an older one.
	EventConflict = "Conflict"
	// EventInvalid is on a rule that is not accepted because of its own spec.
	EventInvalid = "Invalid"
	// ActionAccept is what was tried when EventConflict or EventInvalid happened.
	ActionAccept = "AcceptRule"

	// EventPolicyOutdated is on a rule that the stored admission policy does not match, where an
	// administrator applies the policy.
	EventPolicyOutdated = "PolicyOutdated"
	// ActionApplyPolicy is what an administrator must do when EventPolicyOutdated was emitted.
	ActionApplyPolicy = "ApplyPolicy"

	// EventLimited is on a rule that leaves nodes released because of spec.maxUnavailable.
	EventLimited = "Limited"
	// ActionLimit is what was done when EventLimited happened.
	ActionLimit = "LimitRule"

	// EventStuck is on a node that has been held for longer than spec.progressDeadlineSeconds,
	// and EventDeadlineReleased on one that was released because of that.
	EventStuck            = "Stuck"
	EventDeadlineReleased = "DeadlineReleased"
	// ActionAwait is what was done when EventStuck happened.
	ActionAwait = "AwaitConditions"

	// EventWriteRefused is on a node whose taints or annotations cannot be written.
	EventWriteRefused = "WriteRefused"
	// ActionWriteNode is what was tried when EventWriteRefused happened.
	ActionWriteNode = "WriteNode"

	// EventUnlistedRecord is on a node that carries a hold record which no rule wrote. The manager
	// leaves the record and its taint as they are.
	EventUnlistedRecord = "UnlistedRecord"
	// ActionKeepRecord is what was done when EventUnlistedRecord happened.
	ActionKeepRecord = "KeepRecord"
)

// LeaseName is the lease of the one active controller. Every implementation of this API
// uses the same name, each in its own namespace.
const LeaseName = "ba65f13e.readiness.node.x-k8s.io"

// OtherNamespace is the namespace that kubernetes-sigs/node-readiness-controller, another controller of
// this API, is installed in by default.
const OtherNamespace = "nrr-system"
