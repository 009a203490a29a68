package noderule

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/text"
)

// announce warns when a rule has come to do nothing, or less than it should, once for each cause.
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

// news is the condition if it is False and was not so before, for the same reason. Where words
// matter, other words are news too.
func news(before, after *v1alpha1.NodeReadinessRule, conditionType string, words bool) *metav1.Condition {
	is := meta.FindStatusCondition(after.Status.Conditions, conditionType)
	if is == nil || is.Status == metav1.ConditionTrue {
		return nil
	}
	was := meta.FindStatusCondition(before.Status.Conditions, conditionType)
	if was != nil && was.Status == is.Status && was.Reason == is.Reason && (!words || was.Message == is.Message) {
		return nil
	}
	return is
}
