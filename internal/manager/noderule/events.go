package noderule

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/text"
)

// announce emits a Warning event when a rule is no longer enforced, or only in part: one event per cause.
func (r *Reconciler) announce(before, after *v1alpha1.NodeReadinessRule) {
	if is := news(before, after, v1alpha1.ConditionAccepted, true); is != nil {
		reason := v1alpha1.EventInvalid
		if is.Reason == v1alpha1.ReasonConflict {
			reason = v1alpha1.EventConflict
		}
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, reason, v1alpha1.ActionAccept, "%s", text.Cut(is.Message, text.Event))
	}
	if is := news(before, after, v1alpha1.ConditionTaintedAtCreation, false); is != nil && is.Reason == v1alpha1.ReasonPolicyOutdated {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventPolicyOutdated, v1alpha1.ActionApplyPolicy, "%s", text.Cut(is.Message, text.Event))
	}
	if is := news(before, after, v1alpha1.ConditionEnforced, false); is != nil && is.Reason == v1alpha1.ReasonLimited {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.EventLimited, v1alpha1.ActionLimit, "%s", text.Cut(is.Message, text.Event))
	}
}

// news returns the condition if it is not True and its status or reason has changed; nil otherwise. With message, a
// changed message counts too.
func news(before, after *v1alpha1.NodeReadinessRule, conditionType string, message bool) *metav1.Condition {
	is := meta.FindStatusCondition(after.Status.Conditions, conditionType)
	if is == nil || is.Status == metav1.ConditionTrue {
		return nil
	}
	was := meta.FindStatusCondition(before.Status.Conditions, conditionType)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && (!message || was.Message == is.Message) {
		return nil
	}
	return is
}
