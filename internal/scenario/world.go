package scenario

// World is what an expectation is about, as it is at one moment.
type World struct {
	// Nodes are those of the story.
	Nodes []NodeState
	// Running and Waiting count the pods of the story.
	Running, Waiting int
	// Pods are those of the story.
	Pods  []PodState
	Rules map[string]RuleState
	// Why is the story of a node, and WhyPod that of the first pod of a Deployment there; BornHeld
	// is whether a node with these labels would be born held, BornGated whether a pod with these
	// would get a gate, and Tolerated whether a DaemonSet with these would get a toleration; Last
	// are the components that were the last ones to say yes of pods of a node. They are asked only
	// if the expectation is about them.
	Why       func(node string) (string, error)
	WhyPod    func(deploy, node string) (string, error)
	BornHeld  func(labels map[string]string) (bool, error)
	BornGated func(labels map[string]string) (bool, error)
	Tolerated func(labels map[string]string) (bool, error)
	Last      func(node string) ([]string, error)
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
	// Gated says that it has a readiness gate, Waiting that one of them is closed.
	Gated, Waiting, Ready bool
	// Reasons are those of its gates, as far as there are any.
	Reasons []string
}

// RuleState is one rule.
type RuleState struct{ Standing, Message string }
