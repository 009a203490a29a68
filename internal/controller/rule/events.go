package rule

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/note"
)

// announce warns when a rule has come to do nothing, once for each cause.
func (r *Reconciler) announce(before, after *v1alpha1.NodeReadinessRule) {
	is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionAccepted)
	if is == nil || is.Status == metav1.ConditionTrue {
		return
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionAccepted)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	reason := v1alpha1.EventInvalid
	if is.Reason == v1alpha1.ReasonConflict {
		reason = v1alpha1.EventConflict
	}
	r.Events.Eventf(after, nil, corev1.EventTypeWarning, reason, v1alpha1.ActionAccept, "%s", note.Cut(is.Message, note.Event))
}
