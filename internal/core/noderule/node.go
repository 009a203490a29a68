package noderule

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Node is the part of a node that decisions need. It shares its maps and slices with the object that it was made from,
// and is read-only.
type Node struct {
	Name       string
	UID        types.UID
	Created    time.Time
	Labels     labels.Set
	Taints     []corev1.Taint
	Conditions []corev1.NodeCondition
	// BootID differs after each boot; empty if the node has not reported it yet.
	BootID string

	// Annotations may be reduced to those that IsOurs accepts. Nil means that the node has no annotation at all.
	Annotations map[string]string
}

// NodeOf returns the part of the object that decisions need.
func NodeOf(n *corev1.Node) *Node {
	return &Node{
		Name:        n.Name,
		UID:         n.UID,
		Created:     n.CreationTimestamp.Time,
		Labels:      n.Labels,
		Taints:      n.Spec.Taints,
		Conditions:  n.Status.Conditions,
		BootID:      n.Status.NodeInfo.BootID,
		Annotations: n.Annotations,
	}
}

// IsOurs reports whether an annotation of this key is one of Readygate.
func IsOurs[K string | []byte](key K) bool {
	return begins(key, v1alpha1.HoldPrefix) || begins(key, v1alpha1.CompletedPrefix) || begins(key, v1alpha1.MemoryPrefix)
}

func begins[K string | []byte](key K, prefix string) bool {
	return len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix
}

// TaintID is the identity of a taint on a node. The value is not part of it.
type TaintID struct {
	Key    string
	Effect corev1.TaintEffect
}

func idOf(t *corev1.Taint) TaintID { return TaintID{Key: t.Key, Effect: t.Effect} }

// String is key:effect, as kubectl writes a taint without a value.
func (id TaintID) String() string { return id.Key + ":" + string(id.Effect) }

// managed reports whether a rule may manage such a taint.
func (id TaintID) managed() bool {
	return slices.ContainsFunc(v1alpha1.TaintPrefixes, func(prefix string) bool { return strings.HasPrefix(id.Key, prefix) })
}

// Has reports whether the node has the taint, with any value.
func (n *Node) Has(id TaintID) bool { return contains(n.Taints, id) }

func contains(taints []corev1.Taint, id TaintID) bool {
	for i := range taints {
		if idOf(&taints[i]) == id {
			return true
		}
	}
	return false
}

// condition returns the node's condition of this type; nil if it has none.
func (n *Node) condition(conditionType string) *corev1.NodeCondition {
	for i := range n.Conditions {
		if string(n.Conditions[i].Type) == conditionType {
			return &n.Conditions[i]
		}
	}
	return nil
}

// ready reports whether the node is Ready.
func (n *Node) ready() bool {
	ready := n.condition(string(corev1.NodeReady))
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// LastTransition is when a condition of the rule last changed; zero if never.
func (n *Node) LastTransition(rule *Rule) time.Time {
	var last time.Time
	for _, requirement := range rule.Requirements {
		if c := n.condition(requirement.Type); c != nil && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}
