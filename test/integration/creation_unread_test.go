package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// A policy that the manager may not read, or whose label was changed, still adds taints to nodes: a deleted rule keeps
// its finalizer while the policy may contain it.
func TestARuleKeepsItsFinalizerWhileThePolicyNamesIt(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=2s")
	for name, tc := range map[string]struct {
		change func(t *testing.T) func()
		words  string
	}{
		"the manager may not read it": {func(t *testing.T) func() { return withoutRights(t, c, "get") }, "rejected the request to read the policy"},
		"its label was changed": {func(t *testing.T) func() {
			relabel(t, c, "another-project")
			return func() { relabel(t, c, admission.PartOf) }
		}, "the manager does not change it"},
	} {
		t.Run(name, func(t *testing.T) {
			rule := testenv.Rule(nameOf(t))
			createCovered(t, c, rule)
			restore := tc.change(t)
			if err := c.Client.Delete(t.Context(), rule); err != nil {
				t.Fatal(err)
			}
			c.EventuallyRule(t, rule.Name, "waiting, with the reason", func(r *v1alpha1.NodeReadinessRule) bool {
				enforced := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced)
				return enforced != nil && strings.Contains(enforced.Message, tc.words)
			})
			pause(t.Context(), 4*time.Second) // longer than the settle time
			wantNamed(t, c, rule)
			restore()
			gone(t, c, rule)
			if named(t, c, rule) {
				t.Error("the rule is gone, but the policy still names it")
			}
		})
	}
}

// wantNamed checks that the policy names the rule and that the rule exists.
func wantNamed(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	if !named(t, c, rule) {
		t.Fatal("the policy does not name the rule")
	}
	ruleOf(t, c, rule.Name)
}

func named(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) bool {
	t.Helper()
	obj := admission.TaintNewNodesPolicy()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(obj.Spec.Variables, func(v admissionv1.Variable) bool { return v.Name == admission.VariableOf(rule.UID) })
}

func relabel(t *testing.T, c *testenv.Cluster, partOf string) {
	t.Helper()
	obj := admission.TaintNewNodesPolicy()
	c.Patch(t, obj, func() { obj.Labels[admission.PartOfLabel] = partOf })
}

// withoutRights removes a verb on policies from the manager's role, until the returned function is called.
func withoutRights(t *testing.T, c *testenv.Cluster, verb string) func() {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerAccount}}
	var rights []rbacv1.PolicyRule
	c.Patch(t, role, func() {
		rights = slices.Clone(role.Rules)
		for i := range role.Rules {
			if slices.Contains(role.Rules[i].Resources, "mutatingadmissionpolicies") {
				role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(v string) bool { return v == verb })
			}
		}
	})
	return func() { c.Patch(t, role, func() { role.Rules = rights }) }
}

// The manager retries a rejected policy write, and reports it once: the status of a rule must not change with each
// attempt.
func TestARejectedPolicyWriteIsReportedOnce(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := c.StartProcess(t, testenv.ManagerUser)
	older := testenv.Rule("older")
	createCovered(t, c, older)
	restore := withoutRights(t, c, "update")
	refused := testenv.Rule("refused")
	c.Create(t, refused)
	wantReason(t, c, refused.Name, v1alpha1.ReasonWriteRefused)
	wantReason(t, c, older.Name, v1alpha1.ReasonWriteRefused)
	before, tries := ruleOf(t, c, refused.Name).ResourceVersion, refusals(p)
	testenv.Eventually(t, "more attempts", func(context.Context) error {
		if refusals(p) < tries+3 {
			return errors.New("not yet")
		}
		return nil
	})
	if after := ruleOf(t, c, refused.Name).ResourceVersion; after != before {
		t.Errorf("the rule was written while nothing changed: %s, then %s", before, after)
	}
	restore()
	c.EventuallyRule(t, refused.Name, "covered", covered)
}

// refusals counts the rejected policy writes of the manager.
func refusals(p *testenv.Process) int { return strings.Count(p.Log(), "writing the policy") }

// The manager releases nodes that are created with the taint after it has received the change to dry run: an API server
// may still use the old policy. Nodes that were created before do not change.
func TestADryRunRuleHoldsNoNewNode(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	rule := testenv.Rule(nameOf(t))
	createCovered(t, c, rule)
	c.Create(t, testenv.Node(rule.Name, testenv.Pool(rule.Name)))
	old := c.EventuallyNode(t, rule.Name, "held", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint created" })
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, old) })
	c.Patch(t, rule, func() { rule.Spec.DryRun = true })
	late := []*corev1.Node{old}
	for i := range 40 {
		node := testenv.Node(fmt.Sprintf("%s-%d", rule.Name, i), testenv.Pool(rule.Name))
		c.Create(t, node)
		if holdOf(node, rule) != "" {
			late = append(late, node)
		}
		pause(t.Context(), 50*time.Millisecond)
	}
	c.EventuallyRule(t, rule.Name, "holds only nodes created before the manager saw the change", func(r *v1alpha1.NodeReadinessRule) bool {
		before := int32(0)
		for _, node := range late {
			if r.Status.DryRunSince != nil && node.CreationTimestamp.Before(r.Status.DryRunSince) {
				before++
			}
		}
		return testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonDryRun)(r) && r.Status.Summary.Selected == 41 && r.Status.Summary.Held == before
	})
	c.EventuallyNode(t, rule.Name, "held", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint created" })
	t.Logf("%d nodes were created with the taint after the change", len(late)-1)
}
