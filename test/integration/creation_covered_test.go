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

// uncovered says whether the rule says that new nodes are not tainted at creation, for this reason.
func uncovered(reason string) func(*v1alpha1.NodeReadinessRule) bool {
	return testenv.Is(v1alpha1.ConditionTaintedAtCreation, metav1.ConditionFalse, reason)
}

// wantReason waits until the rule says why new nodes are not tainted at creation, with all these words.
func wantReason(t *testing.T, c *testenv.Cluster, rule, reason string, words ...string) {
	t.Helper()
	got := c.EventuallyRule(t, rule, reason, uncovered(reason))
	message := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionTaintedAtCreation).Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("%s does not say %q: %s", reason, word, message)
		}
	}
}

// coveredSince is since when the condition TaintedAtCreation says what it says.
func coveredSince(rule *v1alpha1.NodeReadinessRule) time.Time {
	return meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionTaintedAtCreation).LastTransitionTime.Time
}

// wantCreated creates a node that the rule selects and wants the answer itself to be tainted.
func wantCreated(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, name string) {
	t.Helper()
	node := testenv.Node(name, testenv.Pool(rule.Name))
	c.Create(t, node)
	if got := holdOf(node, rule); got != "taint created" {
		t.Errorf("%s is created with %q", name, got)
	}
}

// eventuallyCreatedFree waits until the API server no longer puts the rule's taint on.
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

// Whatever is missing or not ours, the rule says it, nodes are held all the same, a moment
// later; and when it is mended, a node is created with the taint from when the rule says so.
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
			c.EventuallyNode(t, node, "held all the same", func(n *corev1.Node) bool { return holdOf(n, rule) == hold })
			mended := time.Now()
			tc.mends(t, c)
			got := c.EventuallyRule(t, rule.Name, "covered again", covered)
			wantCreated(t, c, rule, node+"-created")
			if settled := coveredSince(got).Add(time.Second).Sub(mended); settled < settles { // whole seconds
				t.Errorf("called covered %v after it was mended", settled-time.Second)
			}
		})
	}
	t.Run("a foreign policy is left alone", func(t *testing.T) { testAForeignPolicyIsLeftAlone(t, c) })
	t.Run("the manager may not write", func(t *testing.T) { testTheManagerMayNotWrite(t, c) })
	t.Run("a label that comes later", func(t *testing.T) { testALabelThatComesLater(t, c) })
	t.Run("no room", func(t *testing.T) { testNoRoom(t, c) })
}

// breakage is a way to change the policy or its binding while the manager runs, and back.
type breakage struct {
	name, reason string
	// off says that the API server puts no taint on any more.
	off           bool
	breaks, mends func(*testing.T, *testenv.Cluster)
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
		{"the policy is somebody else's", v1alpha1.ReasonPolicyForeign, false, labelled("theirs"), labelled(admission.PartOf)},
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

// replaceObject deletes what there is and creates the other one, nothing if it is nil.
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

// A policy of that name without our label stays as it is, whatever rules come and go.
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
		t.Errorf("it was written: %v", now.ManagedFields)
	}
	replaceObject(t, c, theirs, admission.TaintNewNodesPolicy())
}

// Without the right to write the policy, a new rule is not covered and a deleted one stays,
// and both say why. Nobody has to tell the manager that it may write again.
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
	c.EventuallyRule(t, before.Name, "waits, and says what for", func(r *v1alpha1.NodeReadinessRule) bool {
		enforced := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced)
		return enforced != nil && strings.Contains(enforced.Message, "rejected the request to write the policy")
	})
	c.Patch(t, role, func() { role.Rules = rights })
	mended := time.Now()
	c.EventuallyRule(t, during.Name, "covered", covered)
	gone(t, c, before)
	if took := time.Since(mended); took > 30*time.Second {
		t.Errorf("it took %v until the manager tried again", took)
	}
}

// The guide selects by a label that no kubelet may set. The rule says so, with the flag that
// helps, and the node is tainted in the request that sets the label.
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
	testenv.Eventually(t, "the label to be enough", func(context.Context) error { // nothing says when the policy has settled
		node := testenv.Node("later-"+string(uuid.NewUUID()), nil)
		c.Create(t, node)
		c.Patch(t, node, func() { node.Labels = map[string]string{"node-role.kubernetes.io/worker": ""} })
		if got := holdOf(node, rule); got != "taint labelled" {
			return fmt.Errorf("labelled with %q", got)
		}
		return nil
	})
}

// A rule that is too long never fits. One that does not fit beside older ones does when one
// of those is gone.
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

// A preview is not covered, nor is a rule in conflict; both are when that has changed.
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
	testenv.Eventually(t, "a policy without the preview", func(ctx context.Context) error {
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

// withoutTheAPI takes MutatingAdmissionPolicy away from an API server: as in a Kubernetes
// that does not have it yet, there is neither the resource nor the plugin.
const withoutTheAPI = "--disable-admission-plugins=MutatingAdmissionPolicy " +
	"--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false,admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false"

// Without the API all works but the taint at creation; and after the cluster is upgraded, that also. Not in
// parallel: the environment says which binaries are started.
func TestRulesAreEnforcedWithoutMutatingPolicies(t *testing.T) {
	setFlags := scriptedAPIServer(t)
	setFlags(withoutTheAPI)
	c := testenv.StartOwnCluster(t)
	for _, obj := range admission.Installed() {
		if _, validating := obj.(*admissionv1.ValidatingAdmissionPolicy); validating {
			c.Create(t, obj.(client.Object))
		}
	}
	c.StartProcess(t, testenv.ManagerUser)
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
		t.Errorf("deleting a rule took %v: nothing was to be waited for", took)
	}
	c.EventuallyNode(t, deleted.Name, "free", free(deleted))

	setFlags("")
	restart(t, c)
	for _, obj := range []client.Object{admission.TaintNewNodesPolicy(), admission.TaintNewNodesBinding()} {
		c.Create(t, obj)
	}
	createCovered(t, c, testenv.Rule("api-later")) // asks at once, not only in a minute
	c.EventuallyRule(t, rule.Name, "covered", covered)
	wantCreated(t, c, rule, "api-created")
}

// scriptedAPIServer lets API servers of this test get flags that are set before their start.
func scriptedAPIServer(t *testing.T) func(flags string) {
	t.Helper()
	binaries, dir := testenv.Binaries(), t.TempDir()
	if err := os.Symlink(filepath.Join(binaries, "etcd"), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	return func(flags string) {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" %s\n", filepath.Join(binaries, "kube-apiserver"), flags)
		if err := os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
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
