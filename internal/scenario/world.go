package scenario

// World is the state of the cluster at one moment, for expectations.
type World struct {
	// Nodes are the nodes of the scenario.
	Nodes []NodeState
	// Pods are the pods of the scenario.
	Pods  []PodState
	Rules map[string]RuleState

	// The functions query the cluster. They are called only if the expectation needs them.

	// Why returns the explanation of a node or, if deploy is not empty, of the first pod of that Deployment on the node.
	Why func(node, deploy string) (string, error)
	// Mutated reports whether a rule would change a new object of this kind with these labels: add a taint to a Node, a
	// gate to a Pod, or a toleration to a DaemonSet.
	Mutated func(kind string, labels map[string]string) (bool, error)
	// Last returns the components that were the last ones to become ready for pods of a node.
	Last func(node string) ([]string, error)
}

// NodeState is the state of one node. If neither field is set, the manager has not reconciled the node yet.
type NodeState struct {
	Name           string
	Held, Released bool
}

// PodState is one pod.
type PodState struct {
	// Node is empty if the pod is not bound.
	Node    string
	Running bool
	// Gated is true if the pod has a readiness gate, Waiting if one of its gates is closed.
	Gated, Waiting, Ready bool
	// Reasons are the reasons of the gates that have a condition.
	Reasons []string
}

// RuleState is one rule.
type RuleState struct{ Standing, Message string }
