package node

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/note"
	"github.com/readygate/readygate/internal/readiness"
)

// record tells of one change on the node. Completion has no event of its own: it comes with
// the removal of the taint.
func (r *Reconciler) record(node *readiness.Node, change readiness.Change) {
	switch change.Kind {
	case readiness.Added:
		r.event(node, change, v1alpha1.EventTaintAdded, v1alpha1.ActionAddTaint, "Taint '%s' added by rule '%s'")
	case readiness.Removed:
		r.event(node, change, v1alpha1.EventTaintRemoved, v1alpha1.ActionRemoveTaint, "Taint '%s' removed by rule '%s'")
	case readiness.Adopted:
		r.event(node, change, v1alpha1.EventTaintAdopted, v1alpha1.ActionAdoptTaint, "Taint '%s' was there before and is now managed by rule '%s'")
	}
}

func (r *Reconciler) event(node *readiness.Node, change readiness.Change, reason, action, format string) {
	r.Events.Eventf(nodeObject(node), ruleObject(change.Rule, change.UID), corev1.EventTypeNormal, reason, action,
		format, change.Taint.String(), change.Rule)
}

// recordRefusal relates the event to the first of the rules: events that differ only in
// their note are counted as one.
func (r *Reconciler) recordRefusal(node *readiness.Node, change readiness.Change, rules []string, err error) {
	text := fmt.Sprintf("The API server refuses to change this node for rule %s; a policy, a role or the rule must change: %v", strings.Join(rules, ", "), err)
	r.Events.Eventf(nodeObject(node), ruleObject(change.Rule, change.UID), corev1.EventTypeWarning,
		v1alpha1.EventWriteRefused, v1alpha1.ActionWriteNode, "%s", note.Cut(text, note.Event))
}

func nodeObject(node *readiness.Node) *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID},
	}
}

func ruleObject(name string, uid types.UID) *v1alpha1.NodeReadinessRule {
	return &v1alpha1.NodeReadinessRule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeReadinessRule"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid},
	}
}
