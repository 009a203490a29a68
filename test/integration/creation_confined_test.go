package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/testenv"
)

// With the policy readygate-taint-new-nodes, a holder of the manager's token can change nodes, and no other kind of
// object.
func TestTaintNewNodesPolicyIsConfinedToNodes(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.NeedMutatingPolicies(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	rule := testenv.Rule("confined")
	c.Create(t, rule)
	t.Run("the manager may write only the policy", func(t *testing.T) { testTheManagerMayWriteOneText(t, c) })
	victims := newVictims(t, c)
	for _, text := range hostileTexts() {
		t.Run(text.name, func(t *testing.T) {
			text.write(t, c)
			text.eventuallyInForce(t, c)
			for name, touch := range victims {
				if err := touch(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	t.Run("a manager that starts restores the policy", func(t *testing.T) {
		c.StartProcess(t, testenv.ManagerUser)
		c.EventuallyRule(t, rule.Name, "covered", covered)
		wantCreated(t, c, rule, "confined")
	})
	t.Run("without the binding the policy applies to all objects: this test can fail", func(t *testing.T) {
		hostileTexts()[0].write(t, c)
		binding := admission.TaintNewNodesBinding()
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
			t.Fatal(err)
		}
		binding.Spec.MatchResources = nil
		if err := c.Client.Update(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "another object to be changed", func(ctx context.Context) error {
			if victims["config maps"](ctx) == nil {
				return errors.New("not yet")
			}
			return nil
		})
	})
}

// docs/reference/policies.md documents what a holder of the manager's token can change: with the policy for new nodes,
// labels and spec of a node, and its status at creation; with the policy for new pods, all fields of a new pod.
func TestAHolderOfTheManagersTokenCanRewriteNodesAndNewPods(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	as, _ := managerByToken(t, c)
	write := func(name string, rule *admissionv1.MatchResources, expression string) {
		t.Helper()
		obj := &admissionv1.MutatingAdmissionPolicy{}
		if err := as.Get(t.Context(), client.ObjectKey{Name: name}, obj); err != nil {
			t.Fatal(err)
		}
		obj.Spec = admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: rule, FailurePolicy: ptr.To(admissionv1.Ignore), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}},
		}
		if err := as.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("nodes", func(t *testing.T) {
		existing := testenv.Node("existing", map[string]string{"a": "b"}, testenv.WithTaint("readiness.k8s.io/mine"))
		c.Create(t, existing)
		write(admission.TaintNewNodesName, admission.TaintNewNodesBinding().Spec.MatchResources, `[
			JSONPatch{op: "add", path: "/metadata/labels", value: {"node-role.kubernetes.io/control-plane": ""}},
			JSONPatch{op: "add", path: "/spec/unschedulable", value: true},
			JSONPatch{op: "add", path: "/spec/taints", value: []}] +
			(oldObject == null ? [JSONPatch{op: "add", path: "/status", value: Object.status{allocatable: {"cpu": "1000"}}}] : [])`)
		rewritten := func(n *corev1.Node) bool {
			_, labelled := n.Labels["node-role.kubernetes.io/control-plane"]
			return labelled && n.Labels["a"] == "" && n.Spec.Unschedulable && !testenv.HasTaint(n, "readiness.k8s.io/mine")
		}
		testenv.Eventually(t, "a write by another client to rewrite the node", func(ctx context.Context) error {
			node, base := &corev1.Node{ObjectMeta: existing.ObjectMeta}, &corev1.Node{ObjectMeta: existing.ObjectMeta}
			node.Annotations = map[string]string{"example.com/another": "client"}
			if err := c.Client.Patch(ctx, node, client.MergeFrom(base)); err != nil || rewritten(node) {
				return err
			}
			return fmt.Errorf("labels %v, spec %v", node.Labels, node.Spec)
		})
		created := testenv.Node("created", nil, testenv.WithTaint("readiness.k8s.io/mine"))
		c.Create(t, created)
		if !rewritten(created) || created.Status.Allocatable.Cpu().String() != "1k" {
			t.Errorf("created with labels %v, spec %v, allocatable %v", created.Labels, created.Spec, created.Status.Allocatable)
		}
	})
	t.Run("pods", func(t *testing.T) {
		const namespace = metav1.NamespaceDefault
		for _, name := range []string{"default", "powerful"} {
			err := c.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
			if client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
		write(admission.GateNewPodsName, admission.GateNewPodsBinding().Spec.MatchResources, `[
			JSONPatch{op: "add", path: "/spec/serviceAccountName", value: "powerful"},
			JSONPatch{op: "add", path: "/spec/volumes", value: [Object.spec.volumes{name: "root", hostPath: Object.spec.volumes.hostPath{path: "/"}}]},
			JSONPatch{op: "add", path: "/spec/containers/0/image", value: "example.com/hostile"},
			JSONPatch{op: "add", path: "/spec/containers/0/command", value: ["/hostile"]},
			JSONPatch{op: "add", path: "/spec/containers/0/volumeMounts", value: [Object.spec.containers.volumeMounts{name: "root", mountPath: "/host"}]},
			JSONPatch{op: "add", path: "/spec/containers/0/securityContext", value: Object.spec.containers.securityContext{runAsUser: 0}}]`)
		testenv.Eventually(t, "a new pod to be rewritten", func(ctx context.Context) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "harmless"}, Spec: corev1.PodSpec{
				AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "app", Image: "app"}},
			}}
			if err := c.Client.Create(ctx, pod, client.DryRunAll); err != nil {
				return err
			}
			app := &pod.Spec.Containers[0]
			if pod.Spec.ServiceAccountName == "powerful" && app.Image == "example.com/hostile" && slices.Equal(app.Command, []string{"/hostile"}) &&
				len(pod.Spec.Volumes) == 1 && pod.Spec.Volumes[0].HostPath != nil && app.SecurityContext != nil && *app.SecurityContext.RunAsUser == 0 {
				return nil
			}
			return fmt.Errorf("created as %v", pod.Spec)
		})
	})
}

// inServedVersion returns a policy in the version that the API server serves.
func inServedVersion(t *testing.T, c *testenv.Cluster, obj client.Object) client.Object {
	t.Helper()
	version, err := c.MutatingVersion()
	if err != nil {
		t.Fatal(err)
	}
	converted, err := mutatingpolicy.In(version, obj)
	if err != nil {
		t.Fatal(err)
	}
	return converted.(client.Object)
}

// testTheManagerMayWriteOneText sends all requests as a dry run: the authorization is the same.
func testTheManagerMayWriteOneText(t *testing.T, c *testenv.Cluster) {
	ctx, as := t.Context(), c.As(t, testenv.ManagerUser)
	mutating, mutatingBinding := admission.TaintNewNodesPolicy(), admission.TaintNewNodesBinding()
	validating, validatingBinding := admission.Manager(), admission.ManagerBinding()
	other := admission.TaintNewNodesPolicy()
	other.Name = "other"
	c.Create(t, other)
	for _, obj := range []client.Object{mutating, mutatingBinding, validating, validatingBinding} {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		kind := fmt.Sprintf("%T", obj)
		another := obj.DeepCopyObject().(client.Object)
		another.SetName("another")
		another.SetResourceVersion("")
		another.SetUID("")
		changed := obj.DeepCopyObject().(client.Object)
		changed.SetLabels(map[string]string{admission.PartOfLabel: "theirs"})
		wantForbidden(t, "creating a "+kind, as.Create(ctx, another, client.DryRunAll))
		wantForbidden(t, "deleting a "+kind, as.Delete(ctx, obj, client.DryRunAll))
		wantForbidden(t, "deleting every "+kind, as.DeleteAllOf(ctx, inServedVersion(t, c, obj), client.DryRunAll))
		wantForbidden(t, "patching a "+kind, as.Patch(ctx, inServedVersion(t, c, changed), client.MergeFrom(inServedVersion(t, c, obj)), client.DryRunAll))
		if obj != mutating {
			wantForbidden(t, "updating a "+kind, as.Update(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll))
		}
	}
	wantForbidden(t, "updating another policy", as.Update(ctx, other, client.DryRunAll))
	// With params of a kind that the API server does not serve, or not yet, as for rules after its start, it would reject
	// all requests that the policy matches, whatever the binding contains.
	for _, kind := range []admissionv1.ParamKind{
		{APIVersion: "v1", Kind: "Secret"},
		{APIVersion: "example.com/v1", Kind: "Unknown"},
		{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeReadinessRule"},
	} {
		reading := mutating.DeepCopy()
		reading.Spec.ParamKind = &kind
		if err := as.Update(ctx, reading, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "spec.paramKind: Forbidden") {
			t.Errorf("letting the policy read a %s: %v", kind.Kind, err)
		}
	}
	if err := as.Update(ctx, mutating, client.DryRunAll); err != nil {
		t.Errorf("writing the policy: %v", err)
	}
}

func wantForbidden(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v", what, err)
	}
}

// mark is the annotation that a hostile policy adds to objects.
const mark = "example.com/hostile"

// hostileText is a version of the policy for new nodes that would change or reject all objects.
type hostileText struct {
	name string
	// refuses is true if it rejects requests; otherwise it sets the mark to its name.
	refuses bool
	change  func(*admissionv1.MutatingAdmissionPolicySpec)
}

// hostileTexts are applied in this order. Two that reject must not follow each other: the test could not distinguish
// them.
func hostileTexts() []hostileText {
	const fails = "string(1 / (request.operation.size() - request.operation.size()))"
	marks := func(as string) string {
		return `(has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) + ` +
			`[JSONPatch{op: "add", path: "/metadata/annotations/example.com~1hostile", value: "` + as + `"}]`
	}
	patches := func(expression string) func(*admissionv1.MutatingAdmissionPolicySpec) {
		return func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Mutations[0].JSONPatch.Expression = expression }
	}
	reads := func(expression string) func(*admissionv1.MutatingAdmissionPolicySpec) {
		return func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.ParamKind = &admissionv1.ParamKind{APIVersion: "v1", Kind: "Node"} // the manager may read them
			patches(expression)(s)
		}
	}
	return []hostileText{
		{name: "a patch that marks", change: patches(marks("a patch that marks"))},
		{name: "a match condition that fails", refuses: true, change: func(s *admissionv1.MutatingAdmissionPolicySpec) {
			patches(marks(""))(s)
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "fails", Expression: fails + " == ''"}}
		}},
		{name: "a patch of data", change: patches(`(has(object.data) ? [JSONPatch{op: "replace", path: "/data", value: {"hostile": "eWVz"}}] : []) + ` + marks("a patch of data"))},
		{name: "a merge that marks", change: func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Mutations = []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{
				Expression: `Object{metadata: Object.metadata{annotations: {"` + mark + `": "a merge that marks"}}}`,
			}}}
		}},
		{name: "params that do not exist", refuses: true, change: reads(`[JSONPatch{op: "add", path: params.metadata.name, value: "yes"}]`)},
		{name: "unused params", change: reads(marks("unused params"))},
		{name: "a patch that fails", refuses: true, change: patches(`[JSONPatch{op: "add", path: "/metadata/annotations", value: ` + fails + `}]`)},
	}
}

// write writes the policy as the manager can, with matchConstraints for all resources.
func (h hostileText) write(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	obj := admission.TaintNewNodesPolicy()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	obj.Spec = admission.TaintNewNodesPolicy().Spec
	obj.Spec.MatchConditions, obj.Spec.Variables, obj.Spec.FailurePolicy = nil, nil, ptr.To(admissionv1.Fail)
	all := &obj.Spec.MatchConstraints.ResourceRules[0].Rule
	all.APIGroups, all.APIVersions, all.Resources = []string{"*"}, []string{"*"}, []string{"*/*"}
	h.change(&obj.Spec)
	if err := c.As(t, testenv.ManagerUser).Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// eventuallyInForce waits until the policy applies to nodes.
func (h hostileText) eventuallyInForce(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	testenv.Eventually(t, "the policy to apply to a node", func(ctx context.Context) error {
		node := testenv.Node("probe", nil)
		err := c.Client.Create(ctx, node, client.DryRunAll)
		if h.refuses && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) || !h.refuses && node.Annotations[mark] == h.name {
			return nil
		}
		return fmt.Errorf("annotations %v (%v)", node.Annotations, err)
	})
}

// newVictims returns writes of many kinds of objects, by name. A write returns an error if the policy applies to it.
func newVictims(t *testing.T, c *testenv.Cluster) map[string]func(context.Context) error {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "victim"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "victim"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	victims := map[string]func(context.Context) error{}
	for name, obj := range map[string]client.Object{
		"config maps":      &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}},
		"secrets":          &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"a": []byte("1")}},
		"pods":             &corev1.Pod{ObjectMeta: meta, Spec: template.Spec},
		"service accounts": &corev1.ServiceAccount{ObjectMeta: meta},
		"deployments": &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
		}},
		"leases":        &coordinationv1.Lease{ObjectMeta: meta},
		"roles":         &rbacv1.Role{ObjectMeta: meta},
		"namespaces":    &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "victim"}},
		"cluster roles": &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "victim"}},
		"rules":         testenv.Rule("victim", testenv.DryRun),
	} {
		existing := obj.DeepCopyObject().(client.Object)
		existing.SetName("existing-victim")
		c.Create(t, existing)
		victims[name] = func(ctx context.Context) error {
			created := obj.DeepCopyObject().(client.Object)
			if err := c.Client.Create(ctx, created, client.DryRunAll); err != nil {
				return err
			}
			return errors.Join(unmarked(created), patchVictim(ctx, c, existing, c.Client.Patch))
		}
	}
	victims["the status of nodes"] = statusVictim(t, c, testenv.Node("existing-victim", nil))
	victims["the status of pods"] = statusVictim(t, c, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "status-victim"}, Spec: template.Spec})
	return victims
}

// statusVictim creates the object, and returns a write of its status.
func statusVictim(t *testing.T, c *testenv.Cluster, obj client.Object) func(context.Context) error {
	t.Helper()
	c.Create(t, obj)
	return func(ctx context.Context) error {
		return patchVictim(ctx, c, obj, func(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			return c.Client.Status().Patch(ctx, obj, patch)
		})
	}
}

type patcher func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

// patchVictim sets another label of the object at each call.
func patchVictim(ctx context.Context, c *testenv.Cluster, obj client.Object, patch patcher) error {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	base := obj.DeepCopyObject().(client.Object)
	obj.SetLabels(map[string]string{"seen": base.GetResourceVersion()})
	if err := patch(ctx, obj, client.MergeFrom(base)); err != nil {
		return err
	}
	return unmarked(obj)
}

// unmarked returns an error if the policy has changed the object.
func unmarked(obj client.Object) error {
	if obj.GetAnnotations()[mark] != "" {
		return fmt.Errorf("%T: marked", obj)
	}
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		if obj.Data["a"] != "1" || len(obj.Data) > 1 {
			return fmt.Errorf("data is %v", obj.Data)
		}
	case *corev1.Secret:
		if string(obj.Data["a"]) != "1" || len(obj.Data) > 1 {
			return fmt.Errorf("data is %v", obj.Data)
		}
	}
	return nil
}
