package scenario

// World is what an expectation is about, as it is at one moment.
type World struct {
	// Nodes are those of the scenario.
	Nodes []NodeState
	// Pods are those of the scenario.
	Pods  []PodState
	Rules map[string]RuleState

	// The functions query the cluster. They are called only if the expectation is about them.

	// Why is the explanation of a node or, if deploy is not empty, of the first pod of that Deployment there.
	Why func(node, deploy string) (string, error)
	// Mutated is whether a new object of this kind with these labels would get what a rule adds: a Node a taint, a Pod a
	// gate, a DaemonSet a toleration.
	Mutated func(kind string, labels map[string]string) (bool, error)
	// Last are the components that were the last ones to become ready for pods of a node.
	Last func(node string) ([]string, error)
}

// NodeState is one node. One that is neither is about to become one of both.
type NodeState struct {
	Name           string
	Held, Released bool
}

// PodState is one pod.
type PodState struct {
	// Node is empty if it is bound to none.
	Node    string
	Running bool
	// Gated is whether it has a readiness gate, Waiting whether one of them is closed.
	Gated, Waiting, Ready bool
	// Reasons are those of its gates, as far as there are any.
	Reasons []string
}

// RuleState is one rule.
type RuleState struct{ Standing, Message string }
