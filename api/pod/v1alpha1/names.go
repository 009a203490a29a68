package v1alpha1

const (
	// CRDName is the name of the CustomResourceDefinition of pod rules.
	CRDName = "podreadinessrules.readygate.dev"

	// DefaultGate is the well-known readiness gate of the pod network (KEP-5709).
	DefaultGate = "networking.kubernetes.io/pod-network-ready"

	// Finalizer keeps a deleted rule until no pod waits because of the rule.
	Finalizer = "readygate.dev/open-gates"

	// GatesAnnotation is on a pod that rules selected when it was created: the gates of these rules, separated by blanks.
	// The API server adds it together with the gates.
	GatesAnnotation = "readygate.dev/gates"

	// LatchAnnotation is on a pod for whose gates podgate has decided: whether the latch is open, and for which sandbox.
	// See package latchkey.
	LatchAnnotation = "readygate.dev/latch"

	// OptOutLabel with the value OptOut excludes a pod from every rule.
	OptOutLabel = "readygate.dev/opt-out"
	// OptOut is the value of OptOutLabel.
	OptOut = "true"

	// LatchName is the name of the init container that waits, and of its volume.
	LatchName = "readygate-latch"

	// DefaultReachPort is the port that podgate connects to for a reach component without a port.
	DefaultReachPort = 9
)

// Types of the conditions in a rule's status.
const (
	// ConditionAccepted is True if the rule is valid.
	ConditionAccepted = "Accepted"

	// ConditionEnforced is True if selected pods are created with the gate and every node that has such pods has a live
	// agent.
	ConditionEnforced = "Enforced"
)

// Reasons of the condition Accepted.
const (
	// ReasonAccepted means that the manager and podgate enforce the rule.
	ReasonAccepted = "Accepted"
	// ReasonInvalid means that the spec cannot be enforced. The message has the fields.
	ReasonInvalid = "Invalid"
)

// Reasons of the condition Enforced. It also has the reasons of TaintedAtCreation of the node half that concern a policy:
// Progressing, APIMissing, PolicyMissing, PolicyOutdated and so on.
const (
	// ReasonEnforced means that the rule is fully enforced.
	ReasonEnforced = "Enforced"
	// ReasonNoAgent means that some nodes with selected pods have no live agent.
	ReasonNoAgent = "NoAgent"
	// ReasonNoLatchImage means that startHold has no effect, because the manager runs without an image for the latch.
	ReasonNoLatchImage = "NoLatchImage"
	// ReasonNotAccepted means that the rule has no effect because it is not Accepted.
	ReasonNotAccepted = "NotAccepted"
	// ReasonDeleting means that the rule is being deleted and that podgate has not yet opened the gates of some pods.
	ReasonDeleting = "Deleting"
)

// Reasons of the pod condition that is the gate. The gate is open if the condition is True, and closed otherwise.
const (
	// ReasonAllReady means that every component is ready. The gate is open.
	ReasonAllReady = "AllComponentsReady"
	// ReasonWaiting means that some components are not ready. The message names them. The gate is closed.
	ReasonWaiting = "ComponentsNotReady"
	// ReasonNewSandbox means that the pod has a new sandbox, and that all results so far were for the previous one. The
	// gate is closed.
	ReasonNewSandbox = "NewSandbox"
	// ReasonDeadline means that the pod has waited for longer than spec.deadlineSeconds. The gate is open.
	ReasonDeadline = "DeadlineExceeded"
	// ReasonAgentGone means that the node has no live agent and that the pod has waited for longer than
	// spec.deadlineSeconds. The gate is open.
	ReasonAgentGone = "AgentGone"
	// ReasonRuleDeleted means that the rule with this gate was deleted. The gate is open.
	ReasonRuleDeleted = "RuleDeleted"
	// ReasonNotSelected means that no rule selects the pod anymore. The gate is open.
	ReasonNotSelected = "NotSelected"
)

// Reporter is the reporting controller of events on pods.
const Reporter = "readygate-podgate"

// Events on a pod (Warning), with their action.
const (
	// EventLate is on a pod that waits for longer than spec.deadlineSeconds.
	EventLate = "NetworkNotReady"
	// ActionAwait is the action of EventLate.
	ActionAwait = "AwaitComponents"
	// EventOpened is on a pod whose gate was opened although a component is not ready.
	EventOpened = "GateOpened"
	// ActionOpen is the action of EventOpened.
	ActionOpen = "OpenGate"
	// EventForeign is on a pod whose gate another account set to True while a component is not ready.
	EventForeign = "GateSetByOther"
	// ActionSetBack is the action of EventForeign.
	ActionSetBack = "SetGateBack"
	// EventFull is on a pod whose annotations have no room for the key of its latch.
	EventFull = "LatchNotOpened"
	// EventLatchClosed is on a pod whose gate is open and whose latch is still closed although its key was written several
	// times.
	EventLatchClosed = "LatchStillClosed"
	// ActionUnlatch is the action of EventFull and EventLatchClosed.
	ActionUnlatch = "OpenLatch"
)
