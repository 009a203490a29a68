package nodestatus

import "time"

// Node is what the reporter needs of a node.
type Node struct {
	Metadata Metadata `json:"metadata,omitzero"`
	Status   Status   `json:"status,omitzero"`
}

// Metadata is the part of a node's metadata that tells it from one of the same name.
type Metadata struct {
	UID string `json:"uid,omitempty"`
}

// Status is the part of a node's status that holds conditions.
type Status struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a node condition.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	LastHeartbeatTime  time.Time `json:"lastHeartbeatTime,omitzero"`
	LastTransitionTime time.Time `json:"lastTransitionTime,omitzero"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// Statuses of a condition.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// SetCondition replaces the condition of the same type, or adds it.
func (n *Node) SetCondition(condition Condition) {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == condition.Type {
			n.Status.Conditions[i] = condition
			return
		}
	}
	n.Status.Conditions = append(n.Status.Conditions, condition)
}

// Condition is the node's condition of a type.
func (n Node) Condition(conditionType string) (Condition, bool) {
	for _, condition := range n.Status.Conditions {
		if condition.Type == conditionType {
			return condition, true
		}
	}
	return Condition{}, false
}
