package v1alpha1

const (
	// CRDName is the name of the CustomResourceDefinition of pod rules.
	CRDName = "podreadinessrules.readygate.dev"

	// DefaultGate is the well-known readiness gate of the pod network (KEP-5709).
	DefaultGate = "networking.kubernetes.io/pod-network-ready"

	// Finalizer keeps a deleted rule until no pod waits for it.
	Finalizer = "readygate.dev/open-gates"

	// GatesAnnotation is on a pod that rules selected as it was created: the gates that they asked
	// for, with a blank between them. The API server adds it along with the gates.
	GatesAnnotation = "readygate.dev/gates"

	// LatchAnnotation is on a pod whose gates were answered: whether the latch is open, and for
	// which sandbox. See package latchkey.
	LatchAnnotation = "readygate.dev/latch"

	// OptOutLabel with the value OptOut keeps a pod from being selected by any rule.
	OptOutLabel = "readygate.dev/opt-out"
	// OptOut is the value of OptOutLabel.
	OptOut = "true"

	// LatchName is the name of the init container that waits, and of its volume.
	LatchName = "readygate-latch"

	// DefaultReachPort is the port that reach tries where a rule names none.
	DefaultReachPort = 9
)

// Types of the conditions in a rule's status.
const (
	// ConditionAccepted is True when the rule is valid.
	ConditionAccepted = "Accepted"

	// ConditionEnforced is True when selected pods are created with the gate and every node
	// that has such pods has a live agent.
	ConditionEnforced = "Enforced"
)

// Reasons of the condition Accepted.
const (
	// ReasonAccepted says that the rule takes part.
	ReasonAccepted = "Accepted"
	// ReasonInvalid says that the spec cannot be enforced, and why.
	ReasonInvalid = "Invalid"
)

// Reasons of the condition Enforced. It also has those of TaintedAtCreation of the node half that
// speak of a policy: Progressing, APIMissing, PolicyMissing, PolicyOutdated and so on.
const (
	// ReasonEnforced says that the rule does what it says.
	ReasonEnforced = "Enforced"
	// ReasonNoAgent says that some nodes with selected pods have no live agent.
	ReasonNoAgent = "NoAgent"
	// ReasonNoLatchImage says that the start of pods is not held, because the manager does not know
	// with what.
	ReasonNoLatchImage = "NoLatchImage"
	// ReasonNotAccepted says that the rule does nothing because it is not Accepted.
	ReasonNotAccepted = "NotAccepted"
	// ReasonDeleting says that the rule is being deleted and pods are still to be opened.
	ReasonDeleting = "Deleting"
)

// Reasons of the condition of a pod that is a gate.
const (
	// ReasonAllReady says that every component has said yes. The gate is open.
	ReasonAllReady = "AllComponentsReady"
	// ReasonWaiting says that some have not. The message names them. The gate is closed.
	ReasonWaiting = "ComponentsNotReady"
	// ReasonNewSandbox says that the pod has a new sandbox, and that the answers so far were for
	// the one before. The gate is closed.
	ReasonNewSandbox = "NewSandbox"
	// ReasonDeadline says that spec.deadlineSeconds are over. The gate is open.
	ReasonDeadline = "DeadlineExceeded"
	// ReasonAgentGone says that the node has no live agent and spec.deadlineSeconds are over. The
	// gate is open.
	ReasonAgentGone = "AgentGone"
	// ReasonRuleDeleted says that the rule that asked for the gate is gone. The gate is open.
	ReasonRuleDeleted = "RuleDeleted"
	// ReasonNotSelected says that no rule selects the pod any more. The gate is open.
	ReasonNotSelected = "NotSelected"
)

// Reporter is the reporting controller of events on pods.
const Reporter = "readygate-podgate"

// Events on a pod (Warning), with their action.
const (
	// EventLate is on a pod that waits for longer than spec.deadlineSeconds.
	EventLate = "NetworkNotReady"
	// ActionAwait is what was done when EventLate happened.
	ActionAwait = "AwaitComponents"
	// EventOpened is on a pod whose gate was opened although a component has not said yes.
	EventOpened = "GateOpened"
	// ActionOpen is what was done when EventOpened happened.
	ActionOpen = "OpenGate"
	// EventForeign is on a pod whose gate another account set to True while a
	// component is missing.
	EventForeign = "GateSetByOther"
	// ActionSetBack is what was done when EventForeign happened.
	ActionSetBack = "SetGateBack"
	// EventFull is on a pod whose annotations have no room for the key of its latch.
	EventFull = "LatchNotOpened"
	// EventLatchClosed is on a pod whose gate is open and whose latch is still closed although its
	// key was written several times.
	EventLatchClosed = "LatchStillClosed"
	// ActionUnlatch is what was to be done when EventFull or EventLatchClosed happened.
	ActionUnlatch = "OpenLatch"
)
