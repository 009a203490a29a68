package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// uncovered reports whether the condition TaintedAtCreation of the rule is False with this reason.
func uncovered(reason string) func(*v1alpha1.NodeReadinessRule) bool {
	return testenv.Is(v1alpha1.ConditionTaintedAtCreation, metav1.ConditionFalse, reason)
}

// wantReason waits until TaintedAtCreation is False with this reason, and checks that its message has these words.
func wantReason(t *testing.T, c *testenv.Cluster, rule, reason string, words ...string) {
	t.Helper()
	got := c.EventuallyRule(t, rule, reason, uncovered(reason))
	message := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionTaintedAtCreation).Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("the message of %s does not contain %q: %s", reason, word, message)
		}
	}
}

// coveredSince returns the last transition time of the condition TaintedAtCreation.
func coveredSince(rule *v1alpha1.NodeReadinessRule) time.Time {
	return meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionTaintedAtCreation).LastTransitionTime.Time
}

// wantCreated creates a node that the rule selects, and checks that the response has the taint.
func wantCreated(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, name string) {
	t.Helper()
	node := testenv.Node(name, testenv.Pool(rule.Name))
	c.Create(t, node)
	if got := holdOf(node, rule); got != "taint created" {
		t.Errorf("%s is created with %q", name, got)
	}
}

// eventuallyCreatedFree waits until the API server no longer adds the rule's taint to new nodes.
func eventuallyCreatedFree(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	testenv.Eventually(t, "a node to be created without the taint", func(ctx context.Context) error {
		node := testenv.Node("probe", testenv.Pool(rule.Name))
		if err := c.Client.Create(ctx, node, client.DryRunAll); err != nil || free(rule)(node) {
			return err
		}
		return errors.New("created with the taint")
	})
}

// If the policy or its binding is missing or foreign, the rule reports it, and the manager holds new nodes shortly after
// their creation. After the fix, nodes are created with the taint once TaintedAtCreation is True.
func TestTaintedAtCreationReportsWhyItIsFalse(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	const settles = 3 * time.Second
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time="+settles.String())
	rule := testenv.Rule("why")
	c.Create(t, rule)
	t.Run("nothing is installed", func(t *testing.T) {
		wantReason(t, c, rule.Name, v1alpha1.ReasonPolicyMissing, "policies.yaml", "--register-with-taints")
		c.Create(t, testenv.Node("why-first", testenv.Pool(rule.Name)))
		c.EventuallyNode(t, "why-first", "held by the manager", func(n *corev1.Node) bool { return holdOf(n, rule) == "taint added" })
		if err := c.InstallPolicies(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.EventuallyRule(t, rule.Name, "covered", covered)
		wantCreated(t, c, rule, "why-installed")
	})
	for i, tc := range breaks() {
		t.Run(tc.name, func(t *testing.T) {
			tc.breaks(t, c)
			wantReason(t, c, rule.Name, tc.reason, admission.TaintNewNodesName, "policies.yaml")
			node, hold := fmt.Sprintf("why-%d", i), "taint created"
			if tc.off {
				hold = "taint added"
				eventuallyCreatedFree(t, c, rule)
			}
			c.Create(t, testenv.Node(node, testenv.Pool(rule.Name)))
			c.EventuallyNode(t, node, "still held", func(n *corev1.Node) bool { return holdOf(n, rule) == hold })
			fixed := time.Now()
			tc.fixes(t, c)
			got := c.EventuallyRule(t, rule.Name, "covered again", covered)
			wantCreated(t, c, rule, node+"-created")
			if settled := coveredSince(got).Add(time.Second).Sub(fixed); settled < settles { // whole seconds
				t.Errorf("TaintedAtCreation is True %v after the fix", settled-time.Second)
			}
		})
	}
	t.Run("the manager does not change a foreign policy", func(t *testing.T) { testAForeignPolicyIsLeftAlone(t, c) })
	t.Run("the manager may not write", func(t *testing.T) { testTheManagerMayNotWrite(t, c) })
	t.Run("a label that is set later", func(t *testing.T) { testALabelThatComesLater(t, c) })
	t.Run("no room", func(t *testing.T) { testNoRoom(t, c) })
}

// breakage is a way to change the policy or its binding while the manager runs, and back.
type breakage struct {
	name, reason string
	// off is true if the API server adds no taint anymore.
	off           bool
	breaks, fixes func(*testing.T, *testenv.Cluster)
}

func breaks() []breakage {
	swapped := func(old, other client.Object) func(*testing.T, *testenv.Cluster) {
		return func(t *testing.T, c *testenv.Cluster) { replaceObject(t, c, old, other) }
	}
	rebound := func(change func(*admissionv1.MutatingAdmissionPolicyBindingSpec)) func(*testing.T, *testenv.Cluster) {
		return func(t *testing.T, c *testenv.Cluster) {
			binding := admission.TaintNewNodesBinding()
			c.Patch(t, binding, func() { change(&binding.Spec) })
		}
	}
	restored := rebound(func(s *admissionv1.MutatingAdmissionPolicyBindingSpec) { *s = admission.TaintNewNodesBinding().Spec })
	labelled := func(value string) func(*testing.T, *testenv.Cluster) {
		return func(t *testing.T, c *testenv.Cluster) {
			obj := admission.TaintNewNodesPolicy()
			c.Patch(t, obj, func() { obj.Labels[admission.PartOfLabel] = value })
		}
	}
	return []breakage{
		{"the policy is deleted", v1alpha1.ReasonPolicyMissing, true, swapped(admission.TaintNewNodesPolicy(), nil), swapped(admission.TaintNewNodesPolicy(), admission.TaintNewNodesPolicy())},
		{"the policy is foreign", v1alpha1.ReasonPolicyForeign, false, labelled("theirs"), labelled(admission.PartOf)},
		{"the binding is deleted", v1alpha1.ReasonBindingMissing, true, swapped(admission.TaintNewNodesBinding(), nil), swapped(admission.TaintNewNodesBinding(), admission.TaintNewNodesBinding())},
		{"the binding is widened", v1alpha1.ReasonBindingForeign, false, rebound(func(s *admissionv1.MutatingAdmissionPolicyBindingSpec) {
			s.MatchResources.ResourceRules[0].Resources = []string{"*"}
		}), restored},
		{"the binding is narrowed", v1alpha1.ReasonBindingForeign, true, rebound(func(s *admissionv1.MutatingAdmissionPolicyBindingSpec) {
			s.MatchResources.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "other"}}
		}), restored},
		{"the binding is that of another policy", v1alpha1.ReasonBindingForeign, true, rebound(func(s *admissionv1.MutatingAdmissionPolicyBindingSpec) {
			s.PolicyName = "other"
		}), restored},
	}
}

// replaceObject deletes the old object and creates the other one, unless it is nil.
func replaceObject(t *testing.T, c *testenv.Cluster, old, other client.Object) {
	t.Helper()
	if err := c.Client.Delete(t.Context(), old); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if other == nil {
		return
	}
	if err := c.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
}

// The manager never changes a policy of this name without Readygate's label.
func testAForeignPolicyIsLeftAlone(t *testing.T, c *testenv.Cluster) {
	theirs := admission.TaintNewNodesPolicy()
	theirs.Labels = nil
	theirs.Spec.Variables = append(theirs.Spec.Variables, admissionv1.Variable{Name: "theirs", Expression: "true"})
	replaceObject(t, c, admission.TaintNewNodesPolicy(), theirs)
	rule := testenv.Rule("foreign")
	c.Create(t, rule)
	wantReason(t, c, rule.Name, v1alpha1.ReasonPolicyForeign, admission.PartOfLabel)
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
	now := admission.TaintNewNodesPolicy()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the policy was written: %v", now.ManagedFields)
	}
	replaceObject(t, c, theirs, admission.TaintNewNodesPolicy())
}

// Without the permission to write the policy, a new rule is not covered and a deleted one stays, and both report why. The
// manager retries, so it uses a restored permission without an event.
func testTheManagerMayNotWrite(t *testing.T, c *testenv.Cluster) {
	before, during := testenv.Rule("refused-before"), testenv.Rule("refused-during")
	createCovered(t, c, before)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerAccount}}
	var rights []rbacv1.PolicyRule
	c.Patch(t, role, func() {
		rights = slices.Clone(role.Rules)
		for i := range role.Rules {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "update" })
		}
	})
	c.Create(t, during)
	wantReason(t, c, during.Name, v1alpha1.ReasonWriteRefused, admission.TaintNewNodesName, "forbidden")
	if err := c.Client.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, before.Name, "waiting, with the reason", func(r *v1alpha1.NodeReadinessRule) bool {
		enforced := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced)
		return enforced != nil && strings.Contains(enforced.Message, "rejected the request to write the policy")
	})
	c.Patch(t, role, func() { role.Rules = rights })
	fixed := time.Now()
	c.EventuallyRule(t, during.Name, "covered", covered)
	gone(t, c, before)
	if took := time.Since(fixed); took > 30*time.Second {
		t.Errorf("the manager retried after %v", took)
	}
}

// The guide selects by a label that kubelets may not set. The rule reports this, with the kubelet flag, and a node gets
// the taint in the request that sets the label.
func testALabelThatComesLater(t *testing.T, c *testenv.Cluster) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "examples", "cni-readiness", "network-readiness-rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), string(data)); err != nil {
		t.Fatal(err)
	}
	const name = "network-readiness-rule"
	remove(t, c, name)
	wantReason(t, c, name, v1alpha1.ReasonLabelNotSetByKubelet, "node-role.kubernetes.io/worker",
		"--register-with-taints=readiness.k8s.io/NetworkReady=pending:NoSchedule")
	rule := ruleOf(t, c, name)
	testenv.Eventually(t, "a request with the label to add the taint", func(context.Context) error { // no condition shows when the policy has settled
		node := testenv.Node("later-"+string(uuid.NewUUID()), nil)
		c.Create(t, node)
		c.Patch(t, node, func() { node.Labels = map[string]string{"node-role.kubernetes.io/worker": ""} })
		if got := holdOf(node, rule); got != "taint labelled" {
			return fmt.Errorf("labelled with %q", got)
		}
		return nil
	})
}

// A rule that is too long never fits into the policy. A rule without room after older ones fits when one of those is
// deleted.
func testNoRoom(t *testing.T, c *testenv.Cluster) {
	long := func(name string, values int) *v1alpha1.NodeReadinessRule {
		return testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) {
			for len(r.Spec.NodeSelector.MatchExpressions)*100 < values {
				requirement := v1alpha1.NodeSelectorRequirement{Key: fmt.Sprintf("long-%d", len(r.Spec.NodeSelector.MatchExpressions)), Operator: metav1.LabelSelectorOpNotIn}
				for i := range 100 {
					requirement.Values = append(requirement.Values, v1alpha1.LabelValue(fmt.Sprintf("%063d", i)))
				}
				r.Spec.NodeSelector.MatchExpressions = append(r.Spec.NodeSelector.MatchExpressions, requirement)
			}
		})
	}
	tooLong := long("too-long", 300)
	c.Create(t, tooLong)
	wantReason(t, c, tooLong.Name, v1alpha1.ReasonTooLarge, admission.TaintNewNodesName, "shorter selector")
	c.Create(t, testenv.Node(tooLong.Name, testenv.Pool(tooLong.Name)))
	c.EventuallyNode(t, tooLong.Name, "held by the manager", func(n *corev1.Node) bool { return holdOf(n, tooLong) == "taint added" })

	older := make([]*v1alpha1.NodeReadinessRule, 4)
	for i := range older {
		older[i] = long(fmt.Sprintf("long-%d", i), 200)
		c.Create(t, older[i])
	}
	for _, rule := range older {
		c.EventuallyRule(t, rule.Name, "covered", covered)
	}
	last := long("last", 200)
	c.Create(t, last)
	wantReason(t, c, last.Name, v1alpha1.ReasonTooLarge)
	if err := c.Client.Delete(t.Context(), older[0]); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, last.Name, "covered", covered)
	wantCreated(t, c, last, "last")
}

// A rule in dry run or in conflict is not covered until that changes.
func TestTaintedAtCreationIsTrueOnlyForEnforcedRules(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	older, younger := testenv.Rule(id), testenv.Rule(id+"-younger", testenv.DryRun)
	younger.Spec.Taint, younger.Spec.NodeSelector = older.Spec.Taint, older.Spec.NodeSelector
	createCovered(t, c, older)
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, older) })
	c.Create(t, younger)
	wantReason(t, c, younger.Name, v1alpha1.ReasonDryRun, "spec.dryRun")
	c.Patch(t, younger, func() { younger.Spec.DryRun = false })
	wantReason(t, c, younger.Name, v1alpha1.ReasonNotAccepted, v1alpha1.ConditionAccepted)
	c.EventuallyRule(t, older.Name, "still covered", covered)
	if err := c.Client.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	c.EventuallyRule(t, younger.Name, "covered", covered)
	node := testenv.Node(id, testenv.Pool(id))
	c.Create(t, node)
	if got := holdOf(node, younger); got != "taint created" {
		t.Errorf("created with %q", got)
	}
	c.Patch(t, younger, func() { younger.Spec.DryRun = true })
	wantReason(t, c, younger.Name, v1alpha1.ReasonDryRun)
	testenv.Eventually(t, "a policy without the rule in dry run", func(ctx context.Context) error {
		obj := admission.TaintNewNodesPolicy()
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if admission.ReadTaintNewNodes(&obj.Spec).Covers(younger.UID) {
			return errors.New("still in it")
		}
		return nil
	})
}

// withoutTheAPI starts an API server without MutatingAdmissionPolicy: as in an older Kubernetes version, it has neither
// the resource nor the admission plugin.
const withoutTheAPI = "--disable-admission-plugins=MutatingAdmissionPolicy " +
	"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false"

// Without the API only the taint at creation does not work, and after an upgrade of the cluster it does. Not in
// parallel: environment variables select the binaries.
func TestRulesAreEnforcedWithoutMutatingPolicies(t *testing.T) {
	setFlags := scriptedAPIServer(t)
	setFlags(withoutTheAPI)
	c := testenv.StartOwnCluster(t)
	for _, obj := range admission.Installed() {
		if _, validating := obj.(*admissionv1.ValidatingAdmissionPolicy); validating {
			c.Create(t, obj.(client.Object))
		}
	}
	manager := c.StartProcess(t, testenv.ManagerUser)
	rule, deleted := testenv.Rule("api"), testenv.Rule("api-deleted")
	for _, r := range []*v1alpha1.NodeReadinessRule{rule, deleted} {
		c.Create(t, r)
		wantReason(t, c, r.Name, v1alpha1.ReasonAPIMissing, "1.36", "--register-with-taints")
		c.Create(t, testenv.Node(r.Name, testenv.Pool(r.Name)))
		c.EventuallyNode(t, r.Name, "held", held(r))
	}
	c.SetCondition(t, rule.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, rule.Name, "released", free(rule))
	start := time.Now()
	if err := c.Client.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	gone(t, c, deleted)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("deleting a rule took %v, must not wait for the settle time", took)
	}
	c.EventuallyNode(t, deleted.Name, "free", free(deleted))

	setFlags("")
	restart(t, c)
	for _, obj := range []client.Object{admission.TaintNewNodesPolicy(), admission.TaintNewNodesBinding()} {
		c.Create(t, obj)
	}
	createCovered(t, c, testenv.Rule("api-later")) // looks up the API at once, not only after a minute
	c.EventuallyRule(t, rule.Name, "covered", covered)
	wantCreated(t, c, rule, "api-created")

	testenv.Eventually(t, "the manager to watch the policy", func(context.Context) error { // it looks for the API every minute
		if !strings.Contains(manager.Log(), `"policy":"readygate-taint-new-nodes","version":"v1"`) {
			return errors.New("not yet")
		}
		return nil
	})
	setFlags(withoutTheAPI)
	restart(t, c)
	wantReason(t, c, rule.Name, v1alpha1.ReasonAPIMissing)
	c.Create(t, testenv.Node("api-gone", testenv.Pool(rule.Name)))
	c.EventuallyNode(t, "api-gone", "held", held(rule))
}

// scriptedAPIServer returns a function that sets flags for the API servers that this test starts later.
func scriptedAPIServer(t *testing.T) func(flags string) {
	t.Helper()
	binaries := testenv.Binaries()
	set := testenv.ReplaceableAPIServer(t)
	return func(flags string) { set(binaries, flags) }
}

// restart kills the API server and starts it again.
func restart(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
