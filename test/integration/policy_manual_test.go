package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// managerByToken returns a client and a kubeconfig with a token of the manager's service account.
func managerByToken(t *testing.T, c *testenv.Cluster) (as client.Client, kubeconfig string) {
	t.Helper()
	return accountByToken(t, c, admission.ManagerAccount)
}

// accountByToken returns a client and a kubeconfig with a token of a service account in the manager's namespace.
func accountByToken(t *testing.T, c *testenv.Cluster, name string) (as client.Client, kubeconfig string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: name}}
	c.Create(t, account)
	token := c.Token(t, account.Namespace, account.Name, nil)
	config := *c.Config
	config.CertData, config.KeyData, config.CertFile, config.KeyFile, config.BearerToken = nil, nil, "", "", token
	as, err := client.New(&config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, _ = c.TokenKubeconfig(t, token)
	return as, kubeconfig
}

// withoutPolicyUpdates removes the right to update policies from the manager's role, as the chart does with
// policies.managed=false.
func withoutPolicyUpdates(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerAccount}}
	c.Patch(t, role, func() {
		for i := range role.Rules {
			if slices.Contains(role.Rules[i].Resources, "mutatingadmissionpolicies") {
				role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "update" })
			}
		}
	})
}

// With --manage-policies=false the manager needs no right to update the policies. A rule reports what the policy lacks,
// and the command for it. After an administrator has run the command, nodes of the rule are created with the taint. A
// deleted rule keeps its finalizer until then, and the manager releases nodes that are created meanwhile.
func TestAnAdministratorAppliesThePolicies(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	withoutPolicyUpdates(t, c)
	as, kubeconfig := managerByToken(t, c)
	health, metrics := testenv.FreeAddress(t), testenv.FreeAddress(t)
	testenv.Start(t, "readygate-manager", nil, "--kubeconfig", kubeconfig, "--health-probe-bind-address", health, "--metrics-bind-address", metrics,
		"--policy-settle-time=1s", "--manage-policies=false")
	admin := c.Kubectl(t)
	rule := testenv.Rule("manual")
	once := testenv.Rule("manual-once", testenv.BootstrapOnly)
	c.Create(t, rule)

	t.Run("the manager's token cannot update a policy", func(t *testing.T) {
		for _, obj := range []client.Object{admission.TaintNewNodesPolicy(), admission.GateNewPodsPolicy()} {
			if err := as.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			wantForbidden(t, "updating "+obj.GetName(), as.Update(t.Context(), obj, client.DryRunAll))
		}
	})
	t.Run("a rule that the policy does not have", func(t *testing.T) {
		wantReason(t, c, rule.Name, v1alpha1.ReasonPolicyOutdated, admission.TaintNewNodesName, "does not have this rule", admissioncontroller.ApplyCommand, "shortly after")
		wantPolicyEvent(t, c, rule)
		wantOutdated(t, metrics, 1)
		c.Create(t, testenv.Node("manual-0", testenv.Pool(rule.Name)))
		c.EventuallyNode(t, "manual-0", "held by the manager", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint added" })
	})
	t.Run("TaintedAtCreation is True once the policy is applied", func(t *testing.T) {
		admin.ApplyPolicies(t)
		c.EventuallyRule(t, rule.Name, "covered", covered)
		wantOutdated(t, metrics, 0)
		wantCreated(t, c, rule, "manual-1")
	})
	c.Create(t, once)
	t.Run("another rule does not change that", func(t *testing.T) {
		wantReason(t, c, once.Name, v1alpha1.ReasonPolicyOutdated, "does not have this rule")
		if got := ruleOf(t, c, rule.Name); !covered(got) {
			t.Errorf("the rule reports %v", got.Status.Conditions)
		}
		admin.ApplyPolicies(t)
		c.EventuallyRule(t, once.Name, "covered", covered)
	})
	t.Run("a changed rule", func(t *testing.T) {
		c.Patch(t, rule, func() { rule.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)) })
		wantReason(t, c, rule.Name, v1alpha1.ReasonPolicyOutdated, "has another version of this rule", admissioncontroller.ApplyCommand)
		admin.ApplyPolicies(t)
		c.EventuallyRule(t, rule.Name, "covered", covered)
	})
	t.Run("an edited policy", func(t *testing.T) {
		obj := admission.TaintNewNodesPolicy()
		c.Patch(t, obj, func() { obj.Spec.Variables[0].Expression += " " })
		for _, r := range []string{rule.Name, once.Name} {
			wantReason(t, c, r, v1alpha1.ReasonPolicyOutdated, "was edited", admissioncontroller.ApplyCommand)
		}
		admin.ApplyPolicies(t)
		c.EventuallyRule(t, rule.Name, "covered", covered)
	})
	t.Run("a deleted rule waits for the administrator", func(t *testing.T) { testADeletedRuleWaitsForTheAdministrator(t, c, admin, rule) })
	t.Run("a deleted policy", func(t *testing.T) {
		if err := c.Client.Delete(t.Context(), admission.TaintNewNodesPolicy()); err != nil {
			t.Fatal(err)
		}
		wantReason(t, c, once.Name, v1alpha1.ReasonPolicyMissing, admission.TaintNewNodesName, admissioncontroller.ApplyCommand)
		admin.ApplyPolicies(t)
		c.EventuallyRule(t, once.Name, "covered", covered)
	})
}

func testADeletedRuleWaitsForTheAdministrator(t *testing.T, c *testenv.Cluster, admin *testenv.Kubectl, rule *v1alpha1.NodeReadinessRule) {
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	wantReason(t, c, rule.Name, v1alpha1.ReasonPolicyOutdated, "still has this rule", admissioncontroller.ApplyCommand)
	c.EventuallyRule(t, rule.Name, "waits, with the command", func(r *v1alpha1.NodeReadinessRule) bool {
		enforced := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced)
		return enforced.Reason == v1alpha1.ReasonDeleting && strings.Contains(enforced.Message, admissioncontroller.ApplyCommand)
	})
	wantCreated(t, c, rule, "manual-2")
	c.EventuallyNode(t, "manual-2", "released", free(rule))
	admin.ApplyPolicies(t)
	gone(t, c, rule)
	eventuallyCreatedFree(t, c, rule)
}

// wantPolicyEvent waits for the event that contains the command.
func wantPolicyEvent(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	testenv.Eventually(t, "an event with the command", func(context.Context) error {
		for _, event := range c.Events(t, rule) {
			if event.Reason == v1alpha1.EventPolicyOutdated && event.Type == corev1.EventTypeWarning && strings.Contains(event.Note, admissioncontroller.ApplyCommand) {
				return nil
			}
		}
		return errors.New("no such event")
	})
}

// wantOutdated waits until the manager's metric for the policy for new nodes has this value.
func wantOutdated(t *testing.T, address string, value int) {
	t.Helper()
	line := fmt.Sprintf("readygate_policy_outdated{policy=%q} %d\n", admission.TaintNewNodesName, value)
	testenv.Eventually(t, "the metric "+line, func(ctx context.Context) error {
		if _, text := get(ctx, address, "/metrics"); !strings.Contains(text, line) {
			return errors.New("another value")
		}
		return nil
	})
}
