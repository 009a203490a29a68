package integration_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// lookalike is the account of another controller with the same account name.
const lookalike = "system:serviceaccount:other-system:" + admission.ManagerAccount

// limited starts a control plane on which RBAC allows the manager everything, so each rejection is by the policy. It
// returns when the policy is enforced.
func limited(t *testing.T) *testenv.Cluster {
	t.Helper()
	c := testenv.StartCluster(t)
	install(t, c)
	for _, user := range []string{testenv.ManagerUser, lookalike} {
		c.Create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything-for-" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	eventuallyLimited(t, c)
	return c
}

// eventuallyLimited waits until the policy is enforced.
func eventuallyLimited(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	node := testenv.Node(probe, nil)
	c.Create(t, node)
	manager := c.As(t, testenv.ManagerUser)
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`))
	testenv.Eventually(t, "the policy to be enforced", func(ctx context.Context) error {
		if err := manager.Patch(ctx, node.DeepCopy(), label, client.DryRunAll); !limits(err) {
			return fmt.Errorf("got %v, want a rejection", err)
		}
		return nil
	})
}

// probe is a node on which tests check whether a policy is enforced.
const probe = "probe"

// limits reports whether an error is a rejection by the policy.
func limits(answer error) bool {
	return answer != nil && strings.Contains(answer.Error(), "ValidatingAdmissionPolicy '"+admission.ManagerName+"'")
}

// busyNode has foreign values in all fields of a node that can be changed.
func busyNode(name string, labels map[string]string) *corev1.Node {
	node := testenv.Node(name, map[string]string{"example.com/label": "a"})
	maps.Copy(node.Labels, labels)
	node.Annotations = map[string]string{"example.com/note": "a", v1alpha1.HoldPrefix + "rule": "old", v1alpha1.CompletedPrefix + "rule": "old"}
	node.Finalizers = []string{"example.com/keep"}
	node.Spec.Taints = []corev1.Taint{
		{Key: "example.com/first", Effect: corev1.TaintEffectNoSchedule},
		{Key: "readiness.k8s.io/network", Value: "pending", Effect: corev1.TaintEffectNoSchedule},
		{Key: "example.com/second", Effect: corev1.TaintEffectNoExecute},
	}
	return node
}

// jsonPatch returns a patch of one operation.
func jsonPatch(op, path, value string) string {
	if value == "" {
		return fmt.Sprintf(`[{"op": %q, "path": %q}]`, op, path)
	}
	return fmt.Sprintf(`[{"op": %q, "path": %q, "value": %s}]`, op, path, value)
}

// RBAC allows the manager everything here, the policy does not. internal/core/admission tests every field.
func TestTheManagerIsLimited(t *testing.T) {
	t.Parallel()
	c := limited(t)
	t.Run("to taints and annotations of rules", func(t *testing.T) { limitedToItsOwn(t, c) })
	t.Run("to updates of nodes", func(t *testing.T) { limitedToUpdates(t, c) })
}

func limitedToItsOwn(t *testing.T, c *testenv.Cluster) {
	node := busyNode("busy", nil)
	c.Create(t, node)
	manager, other := c.As(t, testenv.ManagerUser), c.As(t, lookalike)
	const hold = "/metadata/annotations/readygate.dev~1hold-rule"
	for name, tc := range map[string]struct{ patch, refusal string }{
		"a taint of a rule added":     {patch: jsonPatch("add", "/spec/taints/0", `{"key": "readiness.k8s.io/other", "effect": "NoSchedule"}`)},
		"a taint of a rule removed":   {patch: jsonPatch("remove", "/spec/taints/1", "")},
		"an ownership record changed": {patch: jsonPatch("replace", hold, `"new"`)},
		"a label removed":             {jsonPatch("remove", "/metadata/labels/example.com~1label", ""), "metadata.labels"},
		"an annotation changed":       {jsonPatch("replace", "/metadata/annotations/example.com~1note", `"b"`), "annotations that are not Readygate's"},
		"a foreign taint removed":     {jsonPatch("remove", "/spec/taints/0", ""), "taints that no rule may manage"},
		"foreign taints reordered":    {`[{"op": "move", "from": "/spec/taints/2", "path": "/spec/taints/0"}]`, "taints that no rule may manage"},
		"a cordon":                    {jsonPatch("add", "/spec/unschedulable", `true`), "spec.unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			patch := client.RawPatch(types.JSONPatchType, []byte(tc.patch))
			if err := other.Patch(t.Context(), node.DeepCopy(), patch, client.DryRunAll); err != nil && !strings.Contains(err.Error(), admission.HoldsName) {
				t.Errorf("other accounts are also rejected: %v", err)
			}
			err := manager.Patch(t.Context(), node.DeepCopy(), patch, client.DryRunAll)
			switch {
			case tc.refusal == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case tc.refusal != "" && (!limits(err) || !strings.Contains(err.Error(), "the manager may change taints and annotations of rules on nodes, and not "+tc.refusal)):
				t.Errorf("must be rejected because of %s, got %v", tc.refusal, err)
			}
		})
	}
}

func limitedToUpdates(t *testing.T, c *testenv.Cluster) {
	node := testenv.Node("plain", map[string]string{"example.com/label": "a"})
	c.Create(t, node)
	manager, err := c.ControlPlane.Config(testenv.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(manager)
	if err != nil {
		t.Fatal(err)
	}
	ctx, nodes, dryRun := t.Context(), set.CoreV1().Nodes(), []string{metav1.DryRunAll}
	relabelled := node.DeepCopy()
	relabelled.Labels = nil
	applied := []byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain", "labels": {"a": "b"}}}`)
	condition := []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	const (
		only   = "the manager may only update nodes, and none of their subresources"
		labels = "the manager may change taints and annotations of rules on nodes, and not metadata.labels"
	)
	for name, tc := range map[string]struct {
		answer  error
		refusal string
	}{
		"replacing a node by itself":     {second(nodes.Update(ctx, node, metav1.UpdateOptions{DryRun: dryRun})), ""},
		"replacing a node":               {second(nodes.Update(ctx, relabelled, metav1.UpdateOptions{DryRun: dryRun})), labels},
		"applying to a node":             {second(nodes.Patch(ctx, node.Name, types.ApplyYAMLPatchType, applied, metav1.PatchOptions{DryRun: dryRun, FieldManager: "manager"})), labels},
		"creating a node":                {second(nodes.Create(ctx, testenv.Node("other", nil), metav1.CreateOptions{DryRun: dryRun})), only},
		"deleting a node":                {nodes.Delete(ctx, node.Name, metav1.DeleteOptions{DryRun: dryRun}), only},
		"deleting all nodes":             {nodes.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{}), only},
		"reporting a condition":          {second(nodes.PatchStatus(ctx, node.Name, condition)), only},
		"replacing the status by itself": {second(nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{DryRun: dryRun})), only},
		"reaching a kubelet":             {set.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Do(ctx).Error(), only},
	} {
		if refused := limits(tc.answer) && strings.Contains(tc.answer.Error(), tc.refusal); refused != (tc.refusal != "") || !refused && tc.answer != nil {
			t.Errorf("%s: want %q, got %v", name, tc.refusal, tc.answer)
		}
	}
}

// The policy does not check fields that no client can change.
func TestServerKeepsFieldsThatThePolicyDoesNotCheck(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	node := testenv.Node(id, nil)
	c.Create(t, node)
	for field, value := range map[string]string{
		"name": `"other"`, "namespace": `"default"`, "uid": `"00000000-0000-4000-8000-000000000000"`,
		"creationTimestamp": `"2020-01-01T00:00:00Z"`, "deletionTimestamp": `"2020-01-01T00:00:00Z"`, "deletionGracePeriodSeconds": "7",
	} {
		patch := fmt.Appendf(nil, `[{"op": "add", "path": "/metadata/%s", "value": %s}]`, field, value)
		answer := c.Client.Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.JSONPatchType, patch))
		now := node.DeepCopy()
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(node), now); err != nil {
			t.Fatal(err)
		}
		now.ResourceVersion, now.ManagedFields = node.ResourceVersion, node.ManagedFields
		if !equality.Semantic.DeepEqual(now.ObjectMeta, node.ObjectMeta) {
			t.Errorf("%s: %v, and then it is %+v\nwas %+v", field, answer, now.ObjectMeta, node.ObjectMeta)
		}
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

// The role of the manager allows only patch of nodes.
func TestTheManagersRoleRejectsOtherWritesOfNodes(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	node := testenv.Node(id, nil)
	c.Create(t, node)
	manager := c.As(t, testenv.ManagerUser)
	status := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`))
	for name, answer := range map[string]error{
		"creating a node":                    manager.Create(t.Context(), testenv.Node(id+"-new", nil), client.DryRunAll),
		"deleting a node":                    manager.Delete(t.Context(), node, client.DryRunAll),
		"deleting all nodes":                 manager.DeleteAllOf(t.Context(), &corev1.Node{}, client.DryRunAll),
		"replacing a node":                   manager.Update(t.Context(), node, client.DryRunAll),
		"reporting a condition":              manager.Status().Patch(t.Context(), node, status, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}),
		"creating a policy":                  manager.Create(t.Context(), admission.TaintNewNodesPolicy(), client.DryRunAll),
		"deleting the policy for new nodes":  manager.Delete(t.Context(), admission.TaintNewNodesPolicy(), client.DryRunAll),
		"widening the binding for new nodes": manager.Update(t.Context(), admission.TaintNewNodesBinding(), client.DryRunAll),
		"deleting the binding for new nodes": manager.Delete(t.Context(), admission.TaintNewNodesBinding(), client.DryRunAll),
		"deleting its own limit":             manager.Delete(t.Context(), admission.ManagerBinding(), client.DryRunAll),
		"changing its own limit":             manager.Update(t.Context(), admission.Manager(), client.DryRunAll),
		"allowing kubelets what it does":     manager.Delete(t.Context(), admission.CompletionsBinding(), client.DryRunAll),
	} {
		if !apierrors.IsForbidden(answer) {
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// The policy allows all node writes of the manager: hold, release, adopt, complete, release after deletion, clean up
// leftovers; also on nodes with foreign values.
func TestManagerPolicyAllowsTheManagersWork(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	eventuallyLimited(t, c)
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=1s")
	always, once := testenv.Rule("always"), testenv.Rule("once", testenv.BootstrapOnly)
	createCovered(t, c, always)
	createCovered(t, c, once)

	node := busyNode("busy", testenv.Pool(always.Name))
	delete(node.Annotations, v1alpha1.HoldPrefix+"rule")
	delete(node.Annotations, v1alpha1.CompletedPrefix+"rule")
	node.Spec.Unschedulable, node.Spec.PodCIDR, node.Spec.PodCIDRs, node.Spec.ProviderID = true, "10.1.0.0/24", []string{"10.1.0.0/24"}, "cloud://a"
	c.Create(t, node)
	before := node.DeepCopy()
	c.EventuallyNode(t, node.Name, "created with the taint", held(always))
	for range 2 {
		c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
		c.EventuallyNode(t, node.Name, "released", free(always))
		c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionFalse)
		c.EventuallyNode(t, node.Name, "held again", held(always))
	}
	c.Patch(t, node, func() { node.Labels["pool"] = once.Name })
	c.EventuallyNode(t, node.Name, "released by one rule, held by the other", func(n *corev1.Node) bool { return free(always)(n) && held(once)(n) })
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node.Name, "completed", func(n *corev1.Node) bool { return free(once)(n) && n.Annotations[completedKey(once)] != "" })

	tainted := testenv.Node("tainted", testenv.Pool(always.Name), testenv.WithTaint(always.Spec.Taint.Key))
	c.Create(t, tainted)
	c.EventuallyNode(t, tainted.Name, "adopted", held(always))
	for _, rule := range []*v1alpha1.NodeReadinessRule{always, once} {
		if err := c.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		gone(t, c, rule)
	}
	left := testenv.Node("left", nil, testenv.WithTaint(once.Spec.Taint.Key), func(n *corev1.Node) {
		n.Annotations = map[string]string{recordKey(once): recordOf(once.Spec.Taint.Key)}
	})
	c.Create(t, left)
	c.EventuallyNode(t, left.Name, "cleaned up", free(once))

	wantAsBefore(t, c, before)
	wantNoRefusal(t, c, testenv.ManagerUser)
}

// wantAsBefore checks that all foreign values are unchanged.
func wantAsBefore(t *testing.T, c *testenv.Cluster, before *corev1.Node) {
	t.Helper()
	var now corev1.Node
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(before), &now); err != nil {
		t.Fatal(err)
	}
	foreign := func(node *corev1.Node) string {
		taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, "readiness.k8s.io/always") })
		return fmt.Sprint(taints, node.Annotations["example.com/note"], node.Labels["example.com/label"], node.Finalizers, node.Spec.Unschedulable, node.Spec.PodCIDRs, node.Spec.ProviderID)
	}
	if foreign(&now) != foreign(before) {
		t.Errorf("now %s\nbefore %s", foreign(&now), foreign(before))
	}
}

// wantNoRefusal checks that the API server has rejected no node write of the user.
func wantNoRefusal(t *testing.T, c *testenv.Cluster, user string) {
	t.Helper()
	writes := 0
	for _, request := range c.Requests(t, user) {
		if !request.IsWrite() || request.Resource != "nodes" || request.Name == probe {
			continue
		}
		writes++
		if slices.Contains([]int32{http.StatusForbidden, http.StatusUnprocessableEntity}, request.Code) {
			t.Errorf("%d: %s %s %s by %s", request.Code, request.Verb, request.Name, request.Subresource, user)
		}
	}
	if writes == 0 {
		t.Errorf("%s has written no node", user)
	}
}
