package scenario

// World is what an expectation is about, as it is at one moment.
type World struct {
	// Nodes are those of the scenario.
	Nodes []NodeState
	// Running and Waiting count the pods of the scenario.
	Running, Waiting int
	// Pods are those of the scenario.
	Pods  []PodState
	Rules map[string]RuleState
	// Why is the explanation of a node, and WhyPod that of the first pod of a Deployment there; TaintedAtCreation
	// is whether a node with these labels would be created with the taint of a rule, GatedAtCreation whether a pod with these
	// would get a gate, and Tolerated whether a DaemonSet with these would get a toleration; Last
	// are the components that were the last ones to become ready for pods of a node. They are asked only
	// if the expectation is about them.
	Why               func(node string) (string, error)
	WhyPod            func(deploy, node string) (string, error)
	TaintedAtCreation func(labels map[string]string) (bool, error)
	GatedAtCreation   func(labels map[string]string) (bool, error)
	Tolerated         func(labels map[string]string) (bool, error)
	Last              func(node string) ([]string, error)
}

// NodeState is one node. One that is neither is about to become one of both.
type NodeState struct {
	Name           string
	Held, Released bool
}

// PodState is one pod.
type PodState struct {
	// Node is empty if it is bound to none.
	Node string
	// Gated is whether it has a readiness gate, Waiting whether one of them is closed.
	Gated, Waiting, Ready bool
	// Reasons are those of its gates, as far as there are any.
	Reasons []string
}

// RuleState is one rule.
type RuleState struct{ Standing, Message string }
