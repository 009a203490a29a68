package noderule

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/admission"
)

func TestTaintedAtCreationHasTheReason(t *testing.T) {
	gap := &admission.Gap{Reason: v1alpha1.ReasonPolicyMissing, Message: "there is no policy"}
	tests := map[string]struct {
		label  string
		change func(*v1alpha1.NodeReadinessRule)
		gap    *admission.Gap
		reason string
		words  string
	}{
		"a label that a kubelet may set":     {label: "example.com/pool", reason: v1alpha1.ReasonPolicyActive, words: "created with the taint"},
		"a label that a kubelet may not set": {label: "node-role.kubernetes.io/worker", reason: v1alpha1.ReasonLabelNotSetByKubelet, words: "--register-with-taints=readiness.k8s.io/x=pending:NoSchedule"},
		"no policy":                          {label: "node-role.kubernetes.io/worker", gap: gap, reason: v1alpha1.ReasonPolicyMissing, words: "no policy"},
		"a dry run":                          {label: "a", gap: gap, change: func(r *v1alpha1.NodeReadinessRule) { r.Spec.DryRun = true }, reason: v1alpha1.ReasonDryRun, words: "dryRun"},
		"a rule that is being deleted":       {label: "a", gap: gap, change: func(r *v1alpha1.NodeReadinessRule) { r.DeletionTimestamp = &now }, reason: v1alpha1.ReasonDeleting},
		"a rule that is not valid":           {label: "not valid", gap: gap, reason: v1alpha1.ReasonNotAccepted, words: "Accepted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &v1alpha1.NodeReadinessRule{Spec: v1alpha1.NodeReadinessRuleSpec{
				Conditions:      []v1alpha1.ConditionRequirement{{Type: "Ready", RequiredStatus: corev1.ConditionTrue}},
				Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/x", Value: "pending", Effect: corev1.TaintEffectNoSchedule},
				EnforcementMode: v1alpha1.EnforcementModeContinuous,
				NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{tc.label: "a"}},
			}}
			if tc.change != nil {
				tc.change(obj)
			}
			got := taintedAtCreation(noderule.NewRulebook([]*v1alpha1.NodeReadinessRule{obj}).Rules()[0], tc.gap)
			if got.Reason != tc.reason || !strings.Contains(got.Message, tc.words) {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
			if (got.Status == metav1.ConditionTrue) != (tc.reason == v1alpha1.ReasonPolicyActive) {
				t.Errorf("%s with reason %s", got.Status, got.Reason)
			}
		})
	}
}
