package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// permitCleanup binds the account of the cleanup to its generated role only.
func permitCleanup(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "charts", "readygate", "files", "cleanup-role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: admission.CleanupUser}}
	for _, doc := range strings.Split(string(data), "\n---\n") {
		var role unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &role.Object); err != nil {
			t.Fatal(err)
		}
		c.Create(t, &role)
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
		name := metav1.ObjectMeta{Name: admission.CleanupAccount, Namespace: role.GetNamespace()}
		if role.GetKind() == "Role" {
			c.Create(t, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref})
		} else {
			c.Create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: ref})
		}
	}
}

// startCleanup runs the command with the account of the cleanup.
func startCleanup(t *testing.T, c *testenv.Cluster, args ...string) *testenv.Process {
	t.Helper()
	config, err := c.ControlPlane.Config(admission.CleanupUser, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	return testenv.Start(t, "readygate-manager", nil, append([]string{"cleanup", "--kubeconfig", kubeconfig,
		"--namespace", testenv.ManagerNamespace, "--policy-settle-time=1s"}, args...)...)
}

// cleanUp runs the command, checks its exit code, and returns its output.
func cleanUp(t *testing.T, c *testenv.Cluster, code int, args ...string) string {
	t.Helper()
	return endsWith(t, startCleanup(t, c, args...), code)
}

func endsWith(t *testing.T, p *testenv.Process, code int) string {
	t.Helper()
	<-p.Done()
	if got := p.Terminate(); got != code {
		t.Fatalf("ended with %d, want %d:\n%s", got, code, p.Log())
	}
	return p.Log()
}

func wantSaid(t *testing.T, said string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("the output does not contain %q:\n%s", word, said)
		}
	}
}

// cleanupWrites returns the writes of the cleanup's account, except those of its lease.
func cleanupWrites(t *testing.T, c *testenv.Cluster) []testenv.Request {
	t.Helper()
	return slices.DeleteFunc(c.Requests(t, admission.CleanupUser), func(r testenv.Request) bool { return !r.IsWrite() || r.Resource == "leases" })
}

// wantPermitted checks that no request of the account was forbidden.
func wantPermitted(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	for _, r := range c.Requests(t, admission.CleanupUser) {
		if r.Code == http.StatusForbidden {
			t.Errorf("forbidden: %s %s/%s %s", r.Verb, r.Resource, r.Subresource, r.Name)
		}
	}
}

// wantAbsent checks that an object does not exist.
func wantAbsent(t *testing.T, c *testenv.Cluster, obj client.Object) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Errorf("%T %s is still there (%v)", obj, obj.GetName(), err)
	}
}

// wantUninstalled checks that the policies, their bindings, the list of rule taints and the lease are removed.
func wantUninstalled(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	wantAbsent(t, c, admission.TaintNewNodesPolicy())
	wantAbsent(t, c, admission.TaintNewNodesBinding())
	wantAbsent(t, c, admission.GateNewPodsPolicy())
	wantAbsent(t, c, admission.GateNewPodsBinding())
	wantAbsent(t, c, ruleTaints())
	wantAbsent(t, c, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.ManagerNamespace, Name: v1alpha1.LeaseName}})
}

func now(t *testing.T, c *testenv.Cluster, node string) *corev1.Node {
	t.Helper()
	var obj corev1.Node
	if err := c.Client.Get(t.Context(), types.NamespacedName{Name: node}, &obj); err != nil {
		t.Fatal(err)
	}
	return &obj
}

// inUse is a cluster in which a manager enforces rules of both modes, with nodes in all states, and with foreign
// taints, annotations, conditions and finalizers.
type inUse struct {
	*testenv.Cluster
	always, once *v1alpha1.NodeReadinessRule
	manager      *testenv.Process
}

func newInUse(t *testing.T) *inUse {
	t.Helper()
	c := testenv.StartCluster(t)
	install(t, c)
	permitCleanup(t, c)
	u := &inUse{Cluster: c, manager: c.StartProcess(t, testenv.ManagerUser, append(elect, "--policy-settle-time=1s")...)}
	u.always = testenv.Rule("always", func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{"example.com/keep"} })
	u.once = testenv.Rule("once", testenv.BootstrapOnly)
	t.Cleanup(func() { // its foreign finalizer would keep it
		_ = c.Client.Patch(context.Background(), u.always, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	createCovered(t, c, u.always)
	createCovered(t, c, u.once)

	busy := busyNode("busy", testenv.Pool("always"))
	busy.Annotations, busy.Finalizers = map[string]string{"example.com/note": "a"}, nil
	c.Create(t, busy)
	c.Create(t, testenv.Node("created", testenv.Pool("always")))
	c.Create(t, testenv.Node("adopted", testenv.Pool("once"), testenv.WithTaint(u.once.Spec.Taint.Key)))
	c.CreateNode(t, testenv.Node("released", testenv.Pool("always")), corev1.ConditionTrue)
	c.CreateNode(t, testenv.Node("completed", testenv.Pool("once")), corev1.ConditionTrue)
	c.Create(t, testenv.Node("never-ours", nil, testenv.WithTaint("readiness.k8s.io/never-ours")))
	u.wantEnforced(t)
	return u
}

const strangeUID = "00000000-1111-2222-3333-444444444444"

// leaveRecords adds the leftovers of a deleted rule to a node. No manager may run: it would remove them.
func (u *inUse) leaveRecords(t *testing.T) {
	t.Helper()
	enter(t, u.Cluster, strangeUID, "readiness.k8s.io/gone")
	node := now(t, u.Cluster, "busy")
	u.Patch(t, node, func() {
		node.Annotations[v1alpha1.HoldPrefix+strangeUID] = `{"rule":"gone","taint":"readiness.k8s.io/gone:NoSchedule","origin":"created"}`
		node.Annotations[v1alpha1.CompletedPrefix+strangeUID] = `{"rule-name":"gone"}`
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "readiness.k8s.io/gone", Effect: corev1.TaintEffectNoSchedule})
	})
}

// wantEnforced waits until all nodes are as the rules require.
func (u *inUse) wantEnforced(t *testing.T) {
	t.Helper()
	for node, check := range map[string]func(*corev1.Node) bool{
		"busy": held(u.always), "created": held(u.always), "adopted": held(u.once), "released": free(u.always),
		"completed": func(n *corev1.Node) bool { return free(u.once)(n) && n.Annotations[completedKey(u.once)] != "" },
	} {
		u.EventuallyNode(t, node, "as the rules require", check)
	}
	for _, rule := range []*v1alpha1.NodeReadinessRule{u.always, u.once} {
		u.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	}
}

// wantWithdrawn checks nodes and rules after a cleanup that keeps rules.
func (u *inUse) wantWithdrawn(t *testing.T) {
	t.Helper()
	for _, name := range []string{"busy", "created", "adopted", "released", "completed"} {
		node := now(t, u.Cluster, name)
		for key := range node.Annotations {
			if key != "example.com/note" && key != completedKey(u.once) {
				t.Errorf("%s still has %s", name, key)
			}
		}
		if !free(u.always)(node) || !free(u.once)(node) {
			t.Errorf("%s is still held: %v", name, node.Spec.Taints)
		}
	}
	if now(t, u.Cluster, "completed").Annotations[completedKey(u.once)] == "" {
		t.Error("the completion record of a kept rule is gone: its node would be held again")
	}
	u.wantForeign(t)
	for _, rule := range []*v1alpha1.NodeReadinessRule{u.always, u.once} {
		got := u.EventuallyRule(t, rule.Name, "there", func(*v1alpha1.NodeReadinessRule) bool { return true })
		if slices.Contains(got.Finalizers, v1alpha1.Finalizer) || got.Status.Summary != nil || got.Status.ObservedGeneration != 0 ||
			len(got.Status.AppliedNodes)+len(got.Status.NodeEvaluations) > 0 || meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionEnforced) != nil {
			t.Errorf("rule %s still reports that it is enforced: %v %+v", rule.Name, got.Finalizers, got.Status)
		}
	}
}

// wantForeign checks that foreign taints, annotations and finalizers are unchanged.
func (u *inUse) wantForeign(t *testing.T) {
	t.Helper()
	busy := now(t, u.Cluster, "busy")
	if busy.Annotations["example.com/note"] != "a" || len(busy.Spec.Taints) < 3 || busy.Spec.Taints[0].Key != "example.com/first" ||
		busy.Spec.Taints[1].Key != "readiness.k8s.io/network" || busy.Spec.Taints[2].Key != "example.com/second" {
		t.Errorf("a foreign annotation or taint is lost: %v %v", busy.Annotations, busy.Spec.Taints)
	}
	if !testenv.HasTaint(now(t, u.Cluster, "never-ours"), "readiness.k8s.io/never-ours") {
		t.Error("a foreign taint is gone")
	}
}

// A cleanup with rules does not hang, leaves nothing of Readygate except the rules, and changes nothing that belongs to
// other clients. A second run changes nothing. A manager that is installed again restores the first state.
func TestCleanupRemovesEverythingExceptRules(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	c := u.Cluster
	deployment := deploy(t, c, testenv.ManagerNamespace, admission.ManagerAccount)
	reviewed := metav1.Condition{Type: "example.com/Reviewed", Status: metav1.ConditionTrue, Reason: "Yes", LastTransitionTime: metav1.Now()}
	testenv.Eventually(t, "a condition of another client", func(ctx context.Context) error {
		var rule v1alpha1.NodeReadinessRule
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(u.always), &rule); err != nil {
			return err
		}
		base := rule.DeepCopy()
		meta.SetStatusCondition(&rule.Status.Conditions, reviewed)
		return c.Client.Status().Patch(ctx, &rule, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})

	p := startCleanup(t, c)
	testenv.Eventually(t, "the Deployment to be scaled to 0", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if ptr.Deref(deployment.Spec.Replicas, 1) != 0 {
			return errors.New("it is not")
		}
		return nil
	})
	if writes := cleanupWrites(t, c); len(writes) != 1 {
		t.Errorf("written while the manager leads: %+v", writes)
	}
	if code := u.manager.Terminate(); code != 0 { // as the kubelet does when the pod is deleted
		t.Errorf("the manager ended with %d", code)
	}
	said := endsWith(t, p, 0)
	if c.ServesMutatingPolicies(t) {
		wantSaid(t, said, "objects of policy "+admission.TaintNewNodesName+": 2", "objects of policy "+admission.GateNewPodsName+": 2")
	}
	wantSaid(t, said, "replicas of the manager: 1", "taints: 3", "ownership records: 3",
		"finalizers of NodeReadinessRules: 2", "NodeReadinessRules (2) and their CRD")
	u.wantWithdrawn(t)
	wantUninstalled(t, c)
	got := u.EventuallyRule(t, "always", "there", func(*v1alpha1.NodeReadinessRule) bool { return true })
	if !slices.Equal(got.Finalizers, []string{"example.com/keep"}) || !meta.IsStatusConditionTrue(got.Status.Conditions, reviewed.Type) || got.Status.TakenOverAt == nil {
		t.Errorf("a foreign finalizer or condition, or takenOverAt, is lost: %v %+v", got.Finalizers, got.Status)
	}
	wantPermitted(t, c)
	wantLimited(t, c)

	before := len(cleanupWrites(t, c))
	wantSaid(t, cleanUp(t, c, 0), "Removed: nothing")
	if writes := cleanupWrites(t, c)[before:]; len(writes) > 0 {
		t.Errorf("the second run wrote %+v", writes)
	}

	if c.ServesMutatingPolicies(t) {
		c.Create(t, admission.TaintNewNodesPolicy())
		c.Create(t, admission.TaintNewNodesBinding())
	}
	c.StartProcess(t, testenv.ManagerUser, append(elect, "--policy-settle-time=1s")...)
	c.SetCondition(t, "completed", testenv.Condition, corev1.ConditionFalse) // must not hold the node again
	u.wantEnforced(t)
	u.wantForeign(t)
}

// wantLimited checks that the policy limits the account of the cleanup on nodes.
func wantLimited(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	as := c.As(t, admission.CleanupUser, "system:serviceaccounts", "system:authenticated")
	node := now(t, c, "created")
	for what, patch := range map[string]string{
		"labels": jsonPatch("add", "/metadata/labels/a", `"b"`),
		"taints": jsonPatch("add", "/spec/taints", `[{"key": "readiness.k8s.io/new", "effect": "NoSchedule"}]`),
		"annotations": jsonPatch("add", "/metadata/annotations", fmt.Sprintf(`{%q: "{}"}`, completedKey(&v1alpha1.NodeReadinessRule{
			ObjectMeta: metav1.ObjectMeta{UID: strangeUID}}))),
	} {
		err := as.Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "'"+admission.CleanupName+"'") || !strings.Contains(err.Error(), what) {
			t.Errorf("changing %s: %v", what, err)
		}
	}
	ready := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`))
	if err := as.Status().Patch(t.Context(), node.DeepCopy(), ready); err == nil || !strings.Contains(err.Error(), "conditions") {
		t.Errorf("reporting a condition: %v", err)
	}
}

// With --rules=delete no rule and no completion record stays, and with --conditions no condition of a reporter. The
// cleanup deletes the reporters first, and no other DaemonSets. It removes the taint of a rule also if the rule has no
// finalizer and is not in the list of rule taints.
func TestCleanupDeletesRulesReportersAndConditions(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	c := u.Cluster
	u.manager.Terminate()
	u.leaveRecords(t)
	c.Patch(t, u.always, func() { u.always.Finalizers = nil }) // so that it is removed immediately
	list := ruleTaints()
	c.Patch(t, list, func() { delete(list.Data, string(u.always.UID)) })
	c.SetCondition(t, "released", "Ready", corev1.ConditionTrue)
	ours := map[string]string{"app.kubernetes.io/part-of": "readygate", "app.kubernetes.io/component": "reporter"}
	reporter, other := daemonSet("reporter", ours), daemonSet("other", map[string]string{"app": "other"})
	c.Create(t, reporter)
	c.Create(t, other)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.ManagerNamespace, Name: "reporter-x", Labels: ours,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(reporter, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}},
		Spec: reporter.Spec.Template.Spec,
	}
	c.Create(t, pod)

	p := startCleanup(t, c, "--rules=delete", "--conditions="+testenv.Condition)
	gone(t, c, reporter)
	if writes := cleanupWrites(t, c); len(writes) != 1 {
		t.Errorf("written while a reporter's pod runs: %+v", writes)
	}
	if err := c.Client.Delete(t.Context(), pod); err != nil { // as the garbage collector does
		t.Fatal(err)
	}
	wantSaid(t, endsWith(t, p, 0), "reporters: 1", "NodeReadinessRules: 2", "taints: 4", "ownership records: 4", "completion records: 2", "node conditions: 2")
	var rules v1alpha1.NodeReadinessRuleList
	if err := c.Client.List(t.Context(), &rules); err != nil || len(rules.Items) > 0 {
		t.Errorf("rules are left: %v, %v", rules.Items, err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("the DaemonSet of another component: %v", err)
	}
	for _, name := range []string{"created", "adopted", "completed", "released"} {
		if node := now(t, c, name); !clean(node) {
			t.Errorf("%s is not clean: %v %v", name, node.Spec.Taints, node.Annotations)
		}
	}
	if conditions := now(t, c, "released").Status.Conditions; len(conditions) != 1 || conditions[0].Type != "Ready" {
		t.Errorf("conditions are %v, want only Ready", conditions)
	}
	u.wantForeign(t)
	wantUninstalled(t, c)
	wantPermitted(t, c)
}

func daemonSet(name string, labels map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.ManagerNamespace, Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reporter", Image: "reporter"}}},
			},
		},
	}
}
