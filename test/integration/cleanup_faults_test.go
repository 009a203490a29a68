package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/testenv"
)

// The lease of a manager that is unreachable, and so cannot be stopped, expires.
func TestCleanupWaitsForAnUnreachableManager(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	u.manager.Signal(syscall.SIGSTOP)
	u.leaveRecords(t)
	wantSaid(t, cleanUp(t, u.Cluster, 0), "taints: 4", "ownership records: 4", "completion records: 1")
	u.wantWithdrawn(t)
	wantUninstalled(t, u.Cluster)
	wantPermitted(t, u.Cluster)
}

// If a manager continues to lead, the cleanup names it and changes nothing.
func TestCleanupChangesNothingWhileAManagerLeads(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	said := cleanUp(t, u.Cluster, 1, "--timeout=5s")
	wantSaid(t, said, "holds it and renews it: stop that manager first", "Not done:")
	if writes := cleanupWrites(t, u.Cluster); len(writes) > 0 {
		t.Errorf("written: %+v", writes)
	}
	u.wantEnforced(t)
}

// The cleanup cannot detect a manager without a lease, but it detects that removed taints are restored. It then fails.
func TestCleanupReportsAnotherWriter(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	u.manager.Terminate()
	config, err := u.ControlPlane.Config(testenv.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	unseen := testenv.Start(t, "readygate-manager", nil, "--kubeconfig="+kubeconfig, "--health-probe-bind-address=0")
	testenv.Eventually(t, "the manager to work", func(context.Context) error {
		if !strings.Contains(unseen.Log(), "Starting workers") {
			return errors.New(unseen.Log())
		}
		return nil
	})
	wantSaid(t, cleanUp(t, u.Cluster, 1), "another client restores what was removed: stop the manager", "Not done:")
	unseen.Terminate()
	cleanUp(t, u.Cluster, 0)
	u.wantWithdrawn(t)
	wantUninstalled(t, u.Cluster)
}

// A live controller enforces the rules, and owns nodes and rules. The cleanup removes only what belongs to Readygate
// alone.
func TestCleanupLeavesRulesToAControllerThatEnforcesThem(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	c := u.Cluster
	u.manager.Terminate()
	stopOther := runOther(t, c)
	defer stopOther()
	setByAWaitingManager(t, c, u.always)

	said := cleanUp(t, c, 1, "--rules=delete", "--conditions="+testenv.Condition)
	wantSaid(t, said, "other (lease nrr-system/", "stop that controller first, or use --rules=keep", "node conditions: enforced rules may require them")
	wantSaid(t, cleanUp(t, c, 0), "other (lease nrr-system/", "enforces them")
	wantUninstalled(t, c)
	for name, rule := range map[string]*v1alpha1.NodeReadinessRule{"created": u.always, "busy": u.always, "adopted": u.once} {
		if node := now(t, c, name); !testenv.HasTaint(node, rule.Spec.Taint.Key) || owned(node, rule) {
			t.Errorf("%s must keep its taint and lose Readygate's record: %v %v", name, node.Spec.Taints, node.Annotations)
		}
	}
	completed := now(t, c, "completed")
	if completed.Annotations[completedKey(u.once)] == "" || len(completed.Status.Conditions) != 1 {
		t.Errorf("a record or a condition that the other controller needs is gone: %v %v", completed.Annotations, completed.Status.Conditions)
	}
	for _, rule := range []string{"always", "once"} {
		c.EventuallyRule(t, rule, "enforced by the other controller", func(r *v1alpha1.NodeReadinessRule) bool {
			return slices.Contains(r.Finalizers, v1alpha1.Finalizer) && r.DeletionTimestamp.IsZero() && testenv.Enforced(r) &&
				meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionSoleController) == nil
		})
	}
	wantPermitted(t, c)
}

// setByAWaitingManager sets the condition that a manager sets while it waits for another controller.
func setByAWaitingManager(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
		t.Fatal(err)
	}
	base := rule.DeepCopy()
	meta.SetStatusCondition(&rule.Status.Conditions, leadership.Waiting("nrr-system"))
	if err := c.Client.Status().Patch(t.Context(), rule, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

// A cleanup that is killed at any point and run again has the same result.
func TestCleanupCanBeKilledAnywhere(t *testing.T) {
	t.Parallel()
	const nodes = 300
	c := testenv.StartCluster(t)
	install(t, c)
	permitCleanup(t, c)
	manager := c.StartProcess(t, testenv.ManagerUser, append(elect, "--policy-settle-time=1s")...)
	rule := testenv.Rule("killed")
	createCovered(t, c, rule)
	for i := range nodes {
		c.Create(t, testenv.Node(fmt.Sprintf("killed-%d", i), testenv.Pool(rule.Name)))
	}
	manager.Terminate()

	p := startCleanup(t, c)
	gone(t, c, admission.TaintNewNodesBinding())
	p.Kill() // before the policies have settled
	p = startCleanup(t, c)
	testenv.Eventually(t, "the first nodes to be clean", func(context.Context) error {
		if n := holds(t, c, rule); n == nodes {
			return errors.New("none yet")
		}
		return nil
	})
	p.Kill() // with some nodes clean, and some not
	t.Logf("killed with %d of %d nodes still held", holds(t, c, rule), nodes)
	cleanUp(t, c, 0)
	if n := holds(t, c, rule); n > 0 {
		t.Errorf("%d nodes are still held", n)
	}
	wantUninstalled(t, c)
	wantSaid(t, cleanUp(t, c, 0), "Removed: nothing")
}

// holds counts the nodes that have the taint or the ownership record of the rule.
func holds(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) int {
	t.Helper()
	var list corev1.NodeList
	if err := c.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return free(rule)(&n) }))
}

// The cleanup names rejected writes, and rules then keep their finalizers. A run after the fix is complete. The cleanup
// also names a rule with the finalizer of another controller.
func TestCleanupNamesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	c := u.Cluster
	u.manager.Terminate()
	refusal := handsOff("created", admission.CleanupUser)
	for _, obj := range refusal {
		c.Create(t, obj)
	}
	as := c.As(t, admission.CleanupUser)
	testenv.Eventually(t, "the rejection", func(ctx context.Context) error {
		if err := as.Patch(ctx, testenv.Node("created", nil), client.RawPatch("application/json-patch+json", []byte(`[]`)), client.DryRunAll); err == nil {
			return errors.New("none yet")
		}
		return nil
	})
	said := cleanUp(t, c, 1, "--timeout=8s")
	wantSaid(t, said, "1 nodes: created: patching node:", "hands off this node", "NodeReadinessRules: not changed, because nodes are not clean")
	c.EventuallyRule(t, "always", "with its finalizer", func(r *v1alpha1.NodeReadinessRule) bool { return slices.Contains(r.Finalizers, v1alpha1.Finalizer) })
	c.EventuallyNode(t, "busy", "clean", free(u.always))
	wantAbsent(t, c, admission.TaintNewNodesPolicy())

	for _, obj := range refusal {
		if err := c.Client.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	wantSaid(t, cleanUp(t, c, 1, "--rules=delete", "--timeout=15s"), "1 NodeReadinessRules: always: is being deleted, but has finalizers of other controllers: example.com/keep")
	c.Patch(t, u.always, func() { u.always.Finalizers = nil })
	wantSaid(t, cleanUp(t, c, 0, "--rules=delete"), "lists of rule taints: 1")
	wantSaid(t, cleanUp(t, c, 0, "--rules=delete"), "Removed: nothing")
	wantUninstalled(t, c)
}

// handsOff is a policy that rejects all changes of a node by the user.
func handsOff(node, user string) []client.Object {
	name := metav1.ObjectMeta{Name: "hands-off"}
	return []client.Object{&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
				ResourceNames: []string{node},
			}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("request.userInfo.username != %q", user), Message: "hands off this node"}},
		},
	}, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}}
}

// Without the CRD there are no rules, and the cleanup removes their leftovers. Without the API of mutating policies it
// does not wait for the settle time. Not in parallel: environment variables select the binaries.
func TestCleanupNeedsNeitherTheCRDNorMutatingPolicies(t *testing.T) {
	setFlags := scriptedAPIServer(t)
	setFlags(withoutTheAPI)
	c := testenv.StartOwnCluster(t)
	permitCleanup(t, c)
	enter(t, c, strangeUID, "readiness.k8s.io/left")
	c.Create(t, testenv.Node("left", nil, testenv.WithTaint("example.com/foreign"), testenv.WithTaint("readiness.k8s.io/left"), func(n *corev1.Node) {
		n.Annotations = map[string]string{
			v1alpha1.HoldPrefix + strangeUID:      `{"rule":"gone","taint":"readiness.k8s.io/left:NoSchedule","origin":"added"}`,
			v1alpha1.CompletedPrefix + strangeUID: `{"rule-name":"gone"}`,
			"example.com/note":                    "a",
		}
	}))
	if err := c.Client.DeleteAllOf(t.Context(), crdObject()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the CRD to be gone", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &v1alpha1.NodeReadinessRuleList{}); err == nil {
			return errors.New("still there")
		}
		return nil
	})
	start := time.Now()
	said := cleanUp(t, c, 0, "--rules=delete", "--policy-settle-time=1m")
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v, must not wait for the settle time", took)
	}
	wantSaid(t, said, "the cluster does not serve MutatingAdmissionPolicy", "taints: 1", "ownership records: 1", "completion records: 1")
	node := now(t, c, "left")
	if !testenv.HasTaint(node, "example.com/foreign") || testenv.HasTaint(node, "readiness.k8s.io/left") || len(node.Annotations) != 1 || node.Annotations["example.com/note"] != "a" {
		t.Errorf("want only foreign taints and annotations: %v %v", node.Spec.Taints, node.Annotations)
	}
	wantPermitted(t, c)
}

// The role of the cleanup allows what the cleanup needs, as the other tests show, and denies these requests.
func TestCleanupsRoleDeniesUnneededAccess(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	permitCleanup(t, c)
	const admissionGroup, own = "admissionregistration.k8s.io", testenv.ManagerNamespace
	rules := v1alpha1.GroupVersion.Group
	for name, attributes := range map[string]authorizationv1.ResourceAttributes{
		"deleting nodes":                   {Verb: "delete", Resource: "nodes"},
		"replacing nodes":                  {Verb: "update", Resource: "nodes"},
		"creating rules":                   {Verb: "create", Group: rules, Resource: "nodereadinessrules"},
		"deleting rules all at once":       {Verb: "deletecollection", Group: rules, Resource: "nodereadinessrules"},
		"deleting the CRD":                 {Verb: "delete", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: v1alpha1.CRDName},
		"deleting another policy":          {Verb: "delete", Group: admissionGroup, Resource: "mutatingadmissionpolicies", Name: "other"},
		"deleting its own policy":          {Verb: "delete", Group: admissionGroup, Resource: "validatingadmissionpolicybindings", Name: admission.CleanupName},
		"writing the policy for new nodes": {Verb: "update", Group: admissionGroup, Resource: "mutatingadmissionpolicies", Name: admission.TaintNewNodesName},
		"creating policies":                {Verb: "create", Group: admissionGroup, Resource: "mutatingadmissionpolicies"},
		"changing the manager":             {Verb: "patch", Group: "apps", Resource: "deployments", Namespace: own, Name: admission.ManagerAccount},
		"deleting the manager":             {Verb: "delete", Group: "apps", Resource: "deployments", Namespace: own, Name: admission.ManagerAccount},
		"stopping another Deployment":      {Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: own, Name: "other"},
		"stopping a manager elsewhere":     {Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "kube-system", Name: admission.ManagerAccount},
		"deleting DaemonSets elsewhere":    {Verb: "delete", Group: "apps", Resource: "daemonsets", Namespace: "kube-system"},
		"creating DaemonSets":              {Verb: "create", Group: "apps", Resource: "daemonsets", Namespace: own},
		"deleting pods":                    {Verb: "delete", Resource: "pods", Namespace: own},
		"writing pods":                     {Verb: "patch", Resource: "pods", Namespace: "default"},
		"reading secrets":                  {Verb: "get", Resource: "secrets", Namespace: own},
		"reading another ConfigMap":        {Verb: "get", Resource: "configmaps", Namespace: own, Name: "other"},
		"deleting another ConfigMap":       {Verb: "delete", Resource: "configmaps", Namespace: own, Name: "other"},
		"deleting leases elsewhere":        {Verb: "delete", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system", Name: v1alpha1.LeaseName},
		"writing other leases":             {Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: own, Name: "other"},
		"escalating":                       {Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		"issuing service account tokens":   {Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: own},
		"reaching kubelets through nodes":  {Verb: "get", Resource: "nodes", Subresource: "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: admission.CleanupUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}, ResourceAttributes: &attributes,
			}}
			if err := c.Client.Create(t.Context(), review); err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed {
				t.Errorf("allowed: %s", review.Status.Reason)
			}
		})
	}
}

func TestCleanupRejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	p := testenv.Start(t, "readygate-manager", nil, "cleanup", "--rules=drop")
	wantSaid(t, endsWith(t, p, 1), `--rules is "drop", must be keep or delete`)
	p = testenv.Start(t, "readygate-manager", nil, "cleanup", "now")
	if said := endsWith(t, p, 2); !strings.Contains(said, `unknown argument "now"`) {
		t.Error(said)
	}
}
