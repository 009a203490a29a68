package integration_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// Another controller of this API held nodes without ownership records, and was uninstalled while a rule was being
// deleted. The manager removes the taint of that rule, as the other controller would.
func TestARuleDeletedWithoutAManagerLeavesNoTaint(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule := testenv.Rule("before", func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{v1alpha1.Finalizer} })
	c.Create(t, rule)
	c.Create(t, testenv.Node("before", testenv.Pool(rule.Name), testenv.WithTaint(rule.Spec.Taint.Key)))
	c.Create(t, testenv.Node("elsewhere", nil, testenv.WithTaint(rule.Spec.Taint.Key)))
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	_, stop, err := c.RunManager()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	gone(t, c, rule)
	c.EventuallyNode(t, "before", "free", free(rule))
	c.EventuallyNode(t, "elsewhere", "left alone", func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) })
}

// The API server does not validate node conditions. A condition with an invalid status must not prevent the manager
// from writing the status of rules.
func TestAnInvalidNodeConditionDoesNotStopStatus(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "Degraded")
	c.EventuallyNode(t, id, "held", held(rule))
	c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == 1 && r.Status.NodeEvaluations[0].ConditionResults[0].CurrentStatus == corev1.ConditionUnknown
	})
}

// A deleted rule with a foreign finalizer still has a correct status.
func TestADeletedRuleReportsForeignFinalizers(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{"example.com/keep"} })
	c.Create(t, rule)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool { return testenv.Enforced(r) && r.Status.Summary.Held == 1 })
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	c.EventuallyNode(t, id, "free", free(rule))
	c.EventuallyRule(t, id, "not enforced, no node held, only the foreign finalizer left", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonDeleting)(r) && r.Status.Summary.Held == 0 &&
			slices.Equal(r.Finalizers, []string{"example.com/keep"})
	})
	c.Patch(t, rule, func() { rule.Finalizers = nil })
	gone(t, c, rule)
}

// A foreign condition of the rule survives status writes of the manager.
func TestForeignConditionsOfARuleSurvive(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	c.EventuallyRule(t, id, "enforced", testenv.Enforced)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
		t.Fatal(err)
	}
	base := rule.DeepCopy()
	meta.SetStatusCondition(&rule.Status.Conditions, metav1.Condition{Type: "example.com/Reviewed", Status: metav1.ConditionTrue, Reason: "Yes"})
	if err := c.Client.Status().Patch(t.Context(), rule, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	c.EventuallyRule(t, id, "enforced, with the foreign condition", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == 1 && meta.IsStatusConditionTrue(r.Status.Conditions, "example.com/Reviewed")
	})
}

// If the API server rejects the finalizer, the condition Enforced of the rule reports this.
func TestARefusedFinalizerIsShown(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"v1alpha1"},
						Resources: []string{"nodereadinessrules"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "rule", Expression: `object.metadata.name.startsWith("` + id + `") && !has(oldObject.metadata.finalizers) && request.userInfo.username == "` + testenv.ManagerUser + `"`}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "no finalizers here"}},
		},
	}
	c.Create(t, policy)
	c.Create(t, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: id, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), "")
	// The API server enforces the policy after a delay: repeat until it rejects the finalizer of a rule.
	for i := range 60 {
		rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Name = id + "-" + strings.Repeat("i", i+1) })
		c.Create(t, rule)
		got := c.EventuallyRule(t, rule.Name, "the condition Enforced", func(r *v1alpha1.NodeReadinessRule) bool {
			return meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced) != nil
		})
		enforced := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionEnforced)
		if enforced.Reason == v1alpha1.ReasonWriteRefused && strings.Contains(enforced.Message, "no finalizers here") {
			return
		}
		if err := c.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		gone(t, c, rule)
	}
	t.Error("no rule reported that its finalizer was rejected")
}
