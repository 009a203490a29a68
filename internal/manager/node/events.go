package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/text"
)

// eventKinds are the kinds of change that have an event. Completion has none: it comes with the removal of the taint.
var eventKinds = []struct {
	kind           noderule.ChangeKind
	reason, action string
	format         string
}{
	{noderule.Added, v1alpha1.EventTaintAdded, v1alpha1.ActionAddTaint, "Taint '%s' added by rule '%s'"},
	{noderule.Removed, v1alpha1.EventTaintRemoved, v1alpha1.ActionRemoveTaint, "Taint '%s' removed by rule '%s'"},
	{noderule.Adopted, v1alpha1.EventTaintAdopted, v1alpha1.ActionAdoptTaint, "Existing taint '%s' adopted by rule '%s'"},
}

// record emits events for the changes of one write. An event costs as much as a write of a node, so there is one event
// per kind of change, whatever the number of rules. It is related to the first rule.
func (r *Reconciler) record(node *noderule.Node, changes []noderule.Change) {
	for _, t := range eventKinds {
		var notes []string
		var first noderule.Change
		for _, change := range changes {
			if change.Kind != t.kind {
				continue
			}
			if notes == nil {
				first = change
			}
			notes = append(notes, fmt.Sprintf(t.format, change.Taint, change.Rule))
		}
		if notes != nil {
			r.Events.Eventf(nodeObject(node), ruleObject(first.Rule, first.UID), corev1.EventTypeNormal, t.reason, t.action,
				"%s", text.Cut(strings.Join(notes, "; "), text.Event))
		}
	}
}

// recordDeadlines emits an event about a node that was held until the deadline, with its unmet requirements.
func (r *Reconciler) recordDeadlines(d decision, now time.Time) {
	for _, change := range d.plan.Changes {
		i := slices.IndexFunc(d.Verdicts, func(v noderule.Verdict) bool { return v.Rule.UID == change.UID })
		if i < 0 {
			continue
		}
		waits := waitsFor(&d.Verdicts[i], now)
		switch change.Kind {
		case noderule.Stuck:
			r.Events.Eventf(nodeObject(d.Node), ruleObject(change.Rule, change.UID), corev1.EventTypeWarning, v1alpha1.EventStuck, v1alpha1.ActionAwait,
				"%s", text.Cut(fmt.Sprintf("Held by rule '%s' for longer than progressDeadlineSeconds (%s): %s", change.Rule, d.Verdicts[i].Rule.Deadline, waits), text.Event))
		case noderule.Expired:
			r.Events.Eventf(nodeObject(d.Node), ruleObject(change.Rule, change.UID), corev1.EventTypeWarning, v1alpha1.EventDeadlineReleased, v1alpha1.ActionRemoveTaint,
				"%s", text.Cut(fmt.Sprintf("Released at the deadline of rule '%s' (progressDeadlineSeconds %s): %s", change.Rule, d.Verdicts[i].Rule.Deadline, waits), text.Event))
		}
	}
}

// waitsFor describes the unmet requirements, and since when they are not met.
func waitsFor(verdict *noderule.Verdict, now time.Time) string {
	var parts []string
	for _, unmet := range verdict.Unmet {
		part := unmet.String()
		if !unmet.Since.IsZero() && !unmet.Since.After(now) { // the clock of the reporter may be ahead
			part += ", for " + duration.HumanDuration(now.Sub(unmet.Since))
		}
		parts = append(parts, part)
	}
	switch {
	case verdict.Cause == noderule.CauseNotReady:
		return "the requirements are met, but the node is not Ready"
	case len(parts) == 0:
		return "the requirements are met, but not yet for minReadySeconds"
	}
	return strings.Join(parts, "; ")
}

// recordRefusal emits one event about a rejected write, related to the first rule: events that differ only in their note
// are one series.
func (r *Reconciler) recordRefusal(node *noderule.Node, change noderule.Change, rules []string, err error) {
	message := fmt.Sprintf("The API server rejected the write of this node for rule %s; fix the admission policy, the role or the rule: %v", strings.Join(rules, ", "), err)
	r.Events.Eventf(nodeObject(node), ruleObject(change.Rule, change.UID), corev1.EventTypeWarning,
		v1alpha1.EventWriteRefused, v1alpha1.ActionWriteNode, "%s", text.Cut(message, text.Event))
}

func nodeObject(node *noderule.Node) *corev1.Node {
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
