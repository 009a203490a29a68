package podgate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// outdated returns true if the rule reports that the policy differs from it, with this text and the command.
func outdated(words string) func(*v1alpha1.PodReadinessRule) bool {
	return func(rule *v1alpha1.PodReadinessRule) bool {
		c := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionEnforced)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == nodev1alpha1.ReasonPolicyOutdated &&
			strings.Contains(c.Message, admission.GateNewPodsName) && strings.Contains(c.Message, words) && strings.Contains(c.Message, admissioncontroller.ApplyCommand)
	}
}

// With --manage-policies=false a rule for pods reports what the policy lacks and the command; the command
// reads the image of the latch from the manager's Deployment. A deleted rule waits for the command, and
// agents open the gates of pods that are created meanwhile.
func TestAnAdministratorAppliesThePolicyOfPods(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := errors.Join(served(t.Context(), c), install(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	stop, err := runManager(c, latchImage, func(o *manager.Options) { o.ManagePolicies, o.SettleTime = false, time.Second })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	c.Create(t, managerDeployment("--latch-image="+latchImage))
	admin, s := c.Kubectl(t), stageOn(t, c)
	s.startAgent()

	rule := s.rule("web", startHold)
	s.Create(t, rule)
	s.wantRule(rule, "outdated", outdated("with another --latch-image")) // the installed policy has none
	if gates, _ := gatesOf(s.pod("web", named("before"))); len(gates) > 0 {
		t.Errorf("a pod is created with the gates %v", gates)
	}
	admin.ApplyPolicies(t)
	s.wantRule(rule, "enforced", enforced)
	pod := s.pod("web")
	if gates, _ := gatesOf(pod); !slices.Equal(gates, []string{rule.Spec.Gate}) || latchOf(pod) == nil || latchOf(pod).Image != latchImage {
		t.Errorf("a pod is created with the gates %v and the latch %v", gates, latchOf(pod))
	}

	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	s.wantRule(rule, "waits for the administrator", outdated("still has this rule"))
	late := s.pod("web", named("late"))
	if gates, _ := gatesOf(late); !slices.Equal(gates, []string{rule.Spec.Gate}) {
		t.Errorf("a pod is created with the gates %v", gates)
	}
	s.wantGate(late, rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted)
	s.wantOpenForGood(late, rule.Spec.Gate, v1alpha1.ReasonRuleDeleted)
	admin.ApplyPolicies(t)
	s.wantGone(rule)
}

// managerDeployment is the manager's Deployment with these arguments. No pod of it runs.
func managerDeployment(args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": admission.ManagerAccount}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: admission.ManagerAccount},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager", Args: args}}},
			},
		},
	}
}
