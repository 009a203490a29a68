package nodestatus

import (
	"slices"
	"time"
)

// Node is the part of a node that the reporter uses.
type Node struct {
	Metadata Metadata `json:"metadata,omitzero"`
	Status   Status   `json:"status,omitzero"`
}

// Metadata is the part of a node's metadata that distinguishes it from an earlier node of the same name.
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
	if i := n.index(condition.Type); i >= 0 {
		n.Status.Conditions[i] = condition
		return
	}
	n.Status.Conditions = append(n.Status.Conditions, condition)
}

// Condition returns the node's condition of a type, and whether it exists.
func (n Node) Condition(conditionType string) (Condition, bool) {
	if i := n.index(conditionType); i >= 0 {
		return n.Status.Conditions[i], true
	}
	return Condition{}, false
}

func (n Node) index(conditionType string) int {
	return slices.IndexFunc(n.Status.Conditions, func(c Condition) bool { return c.Type == conditionType })
}
