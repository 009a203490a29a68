package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// protection returns the example that enables the protection of completion records.
func protection(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "examples", "protect-completions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheExampleIsTheBindingOfTheProtection(t *testing.T) {
	var example admissionv1.ValidatingAdmissionPolicyBinding
	if err := yaml.UnmarshalStrict([]byte(protection(t)), &example); err != nil {
		t.Fatal(err)
	}
	if want := admission.CompletionsBinding(); !reflect.DeepEqual(&example, want) {
		t.Errorf("the example is %+v, want %+v", example, want)
	}
}

// protect applies the example and waits until it is enforced.
func protect(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	if err := c.Apply(t.Context(), protection(t)); err != nil {
		t.Fatal(err)
	}
	api, node := kubelet(t, c, probe), testenv.Node(probe, nil)
	node.Annotations = map[string]string{v1alpha1.CompletedPrefix + "rule": "true"}
	testenv.Eventually(t, "the policy to be enforced", func(ctx context.Context) error {
		if err := api.Create(ctx, node.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("got %v, want a rejection", err)
		}
		return nil
	})
}

// agentUser is an agent on nodes that shares the account of its network plugin.
const agentUser = "system:serviceaccount:kube-system:calico-node"

// agent returns a client of the agent, with a role that agents typically have.
func agent(t *testing.T, c *testenv.Cluster) client.Client {
	t.Helper()
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "patch", "update", "create"},
	}}})
	c.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agent"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: agentUser}},
	})
	return c.As(t, agentUser, "system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
}

// Without the example the API server rejects nothing. With it, the API server rejects only completion records that
// kubelets and agents write.
func TestOnlyTheManagerMarksNodesAsCompleted(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	c.StartProcess(t, testenv.ManagerUser)
	rule := testenv.Rule("once", testenv.BootstrapOnly)
	createCovered(t, c, rule)
	requests := forgeries(t, c, rule)
	for name, request := range requests {
		if err := request.send(t.Context()); err != nil {
			t.Errorf("without the binding, %s is rejected: %v", name, err)
		}
	}
	protect(t, c)
	for name, request := range requests {
		err := request.send(t.Context())
		switch {
		case request.forges == "" && err != nil:
			t.Errorf("%s: rejected: %v", name, err)
		case request.forges != "" && (!apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), forgeryRefused(request.forges))):
			t.Errorf("%s: must be rejected, got %v", name, err)
		}
	}
	wantKubectlRefused(t, c, rule)
}

// forgeryRefused returns the message with which the policy rejects an annotation.
func forgeryRefused(key string) string {
	return "ValidatingAdmissionPolicy 'readygate-completions' with binding 'readygate-completions' denied request: " +
		"of kubelets and service accounts, only the manager of Readygate (" + admission.ManagerUser + ") may mark a node as completed or in use: remove the annotation " + key + " from the request"
}

// wantKubectlRefused checks the output of kubectl with a kubelet's credentials.
func wantKubectlRefused(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	config, err := c.ControlPlane.Config("system:node:fresh", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	key := v1alpha1.CompletedPrefix + rule.Name
	out, err := (&testenv.Cluster{Config: config}).Kubectl(t).Output(t.Context(), "annotate", "node", "fresh", key+"=true")
	if want := `Error from server (Forbidden): nodes "fresh" is forbidden: ` + forgeryRefused(key) + "\n"; err == nil || out != want {
		t.Errorf("kubectl prints %q, want %q", out, want)
	}
}

// attempt is a request that can be sent repeatedly; forges is the annotation that the policy must reject.
type attempt struct {
	send   func(context.Context) error
	forges string
}

// forgeries returns requests that mark nodes as completed, and similar requests that are allowed.
func forgeries(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) map[string]attempt {
	t.Helper()
	byUID, byName := completedKey(rule), v1alpha1.CompletedPrefix+rule.Name
	fresh, marked := testenv.Node("fresh", testenv.Pool(rule.Name)), testenv.Node("marked", testenv.Pool(rule.Name))
	marked.Annotations = map[string]string{byUID: `{"rule-name":"once"}`}
	c.Create(t, fresh)
	c.Create(t, marked)
	as := map[string]client.Client{
		"a kubelet": kubelet(t, c, fresh.Name), "the kubelet of a marked node": kubelet(t, c, marked.Name), "a new kubelet": kubelet(t, c, "joining"),
		"an agent": agent(t, c), "the manager": c.As(t, testenv.ManagerUser, "system:serviceaccounts", "system:authenticated"), "an administrator": c.Client,
	}
	patch := func(who string, node *corev1.Node, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return as[who].Patch(ctx, node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body)), client.DryRunAll)
		}
	}
	patchStatus := func(who string, node *corev1.Node, body string) func(context.Context) error {
		return func(ctx context.Context) error {
			return as[who].Status().Patch(ctx, node.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body)),
				&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
		}
	}
	served := c.ServesMutatingPolicies(t)
	register := func(who string, annotations map[string]string) func(context.Context) error {
		return func(ctx context.Context) error {
			node := testenv.Node("joining", testenv.Pool(rule.Name), func(n *corev1.Node) { n.Annotations = annotations })
			err := as[who].Create(ctx, node, client.DryRunAll)
			if err == nil && annotations[byUID] == "" && served && !held(rule)(node) {
				return fmt.Errorf("not created with the taint: %v", node)
			}
			return err
		}
	}
	mark := func(key string) string { return fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, key) }
	return map[string]attempt{
		"a kubelet marks its node":                    {patch("a kubelet", fresh, mark(byUID)), byUID},
		"a kubelet marks its node through the status": {patchStatus("a kubelet", fresh, mark(byName)), byName},
		"a kubelet registers a marked node":           {register("a new kubelet", map[string]string{byUID: "true"}), byUID},
		"an agent marks a node":                       {patch("an agent", fresh, mark(byUID)), byUID},

		"a kubelet registers a node":                     {send: register("a new kubelet", nil)},
		"a kubelet removes a record":                     {send: patch("the kubelet of a marked node", marked, fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, byUID))},
		"a kubelet reports a condition of a marked node": {send: patchStatus("the kubelet of a marked node", marked, `{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)},
		"an agent labels a node":                         {send: patch("an agent", marked, `{"metadata": {"labels": {"a": "b"}}}`)},
		"the manager marks a node":                       {send: patch("the manager", fresh, mark(byUID))},
		"an administrator marks a node":                  {send: patch("an administrator", fresh, mark(byUID))},
	}
}

const (
	soakNodes = 6
	soakTime  = 20 * time.Second
)

// With all policies in force, the API server rejects no usual request of kubelets. Nodes are created with the taint,
// completed by the manager, deleted and registered again.
func TestPoliciesRejectNoRequestOfKubelets(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	protect(t, c)
	c.StartProcess(t, testenv.ManagerUser)
	once, always := testenv.Rule("once", testenv.BootstrapOnly), testenv.Rule("always")
	always.Spec.NodeSelector, always.Spec.Conditions[0].Type = once.Spec.NodeSelector, "example.com/NeverReported"
	createCovered(t, c, once)
	createCovered(t, c, always)

	served, reporter, start := c.ServesMutatingPolicies(t), agent(t, c), time.Now()
	var kubelets sync.WaitGroup
	lives := make([]int, soakNodes)
	for i := range soakNodes {
		name := fmt.Sprintf("soak-%d", i)
		k := &soakKubelet{T: t, c: c, name: name, api: kubelet(t, c, name), reporter: reporter, once: once, always: always, served: served}
		kubelets.Go(func() {
			for !t.Failed() && (lives[i] < 2 || time.Since(start) < soakTime) {
				k.live(t.Context())
				lives[i]++
			}
		})
	}
	kubelets.Wait()
	sent := map[string]int{}
	for i := range soakNodes {
		user := fmt.Sprintf("system:node:soak-%d", i)
		wantNoRefusal(t, c, user)
		for _, request := range c.Requests(t, user) {
			sent[strings.Trim(fmt.Sprintf("%s %s/%s %d", request.Verb, request.Resource, request.Subresource, request.Code), "/")]++
		}
	}
	wantNoRefusal(t, c, agentUser)
	t.Logf("lives of each node: %v, requests of kubelets: %v", lives, sent)
}

// soakKubelet sends what the kubelet of a node sends.
type soakKubelet struct {
	*testing.T
	c             *testenv.Cluster
	name          string
	api, reporter client.Client
	once, always  *v1alpha1.NodeReadinessRule
	served        bool // the API server serves MutatingAdmissionPolicy

	beats int
}

// live runs one life cycle of a node: registration, release, normal operation, deletion.
func (k *soakKubelet) live(ctx context.Context) {
	k.register(ctx)
	for i := 0; !k.Failed() && !k.completed(ctx); i++ {
		k.beat(ctx)
		if i == 5 {
			k.report(ctx)
		}
	}
	for range 10 {
		k.beat(ctx)
		k.replaceStatus(ctx)
		k.relabel(ctx)
	}
	k.check("deleting the node", k.c.Client.Delete(ctx, testenv.Node(k.name, nil)))
	k.beat(ctx) // the kubelet has not received the deletion
}

// read returns the current node, or nil if it is deleted.
func (k *soakKubelet) read(ctx context.Context) *corev1.Node {
	var node corev1.Node
	if err := k.api.Get(ctx, types.NamespacedName{Name: k.name}, &node); err != nil {
		k.check("reading the node", err)
		return nil
	}
	return &node
}

// check ignores errors that kubelets also get: conflicts with other writers, and a deleted node.
func (k *soakKubelet) check(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		k.Errorf("%s, %s: %v", k.name, what, err)
	}
}

// register creates the node twice, as a kubelet that restarts does.
func (k *soakKubelet) register(ctx context.Context) {
	node := k.node()
	if err := k.api.Create(ctx, node); err != nil {
		k.Errorf("registering %s: %v", k.name, err)
	}
	if k.served && (!held(k.once)(node) || !held(k.always)(node)) {
		k.Errorf("%s is not created with the taint: %v %v", k.name, node.Spec.Taints, node.Annotations)
	}
	if err := k.api.Create(ctx, k.node()); !apierrors.IsAlreadyExists(err) {
		k.Errorf("registering %s again: %v", k.name, err)
	}
	k.renew(ctx)
}

// node returns a node as a kubelet registers it.
func (k *soakKubelet) node() *corev1.Node {
	labels := testenv.Pool(k.once.Name)
	for key, value := range map[string]string{corev1.LabelHostname: k.name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelInstanceTypeStable: "small", corev1.LabelTopologyZone: "a", "node.kubernetes.io/exclude-from-external-load-balancers": ""} {
		labels[key] = value
	}
	node := testenv.Node(k.name, labels)
	node.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	node.Status = k.status(corev1.ConditionFalse)
	return node
}

func (k *soakKubelet) status(isReady corev1.ConditionStatus) corev1.NodeStatus {
	k.beats++
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	status := corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", 1+k.beats%200)}, {Type: corev1.NodeHostName, Address: k.name}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
		NodeInfo:        corev1.NodeSystemInfo{MachineID: k.name, KubeletVersion: "v1.37.0", OperatingSystem: "linux", Architecture: "amd64"},
		VolumesInUse:    []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/disk-%d", k.beats%3))},
	}
	for i := range 20 {
		status.Images = append(status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/image-%d:%d", i, k.beats%5)}, SizeBytes: int64(1000 * (20 - i))})
	}
	now := metav1.Now()
	for _, conditionType := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		condition := corev1.NodeCondition{Type: conditionType, Status: corev1.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Kubelet", Message: strconv.Itoa(k.beats)}
		if conditionType == corev1.NodeReady {
			condition.Status = isReady
		}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// beat patches the status and the labels that the kubelet reconciles, and renews the lease.
func (k *soakKubelet) beat(ctx context.Context) {
	old := k.read(ctx)
	if old == nil {
		return
	}
	node := old.DeepCopy()
	keep := node.Status.Conditions
	node.Status = k.status(corev1.ConditionTrue)
	for _, condition := range keep { // conditions of other writers
		if condition.Type == testenv.Condition {
			node.Status.Conditions = append(node.Status.Conditions, condition)
		}
	}
	node.Labels[corev1.LabelInstanceTypeStable] = []string{"small", "large"}[k.beats%2]
	node.Annotations["example.com/kubelet"] = strconv.Itoa(k.beats)
	k.check("patching the status", k.api.Status().Patch(ctx, node, client.StrategicMergeFrom(old)))
	k.renew(ctx)
	pause(ctx, 20*time.Millisecond)
}

// replaceStatus updates the whole status of the node that it read, as old kubelets do.
func (k *soakKubelet) replaceStatus(ctx context.Context) {
	if node := k.read(ctx); node != nil {
		node.Status.NodeInfo.BootID = strconv.Itoa(k.beats)
		k.check("replacing the status", k.api.Status().Update(ctx, node))
	}
}

// relabel updates the whole node with another label that a kubelet may set.
func (k *soakKubelet) relabel(ctx context.Context) {
	if node := k.read(ctx); node != nil {
		node.Labels[corev1.LabelTopologyZone] = []string{"a", "b"}[k.beats%2]
		k.check("replacing the node", k.api.Update(ctx, node))
	}
}

func (k *soakKubelet) renew(ctx context.Context) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: k.name}}
	if err := k.api.Get(ctx, client.ObjectKeyFromObject(lease), lease); apierrors.IsNotFound(err) {
		k.check("creating the lease", k.api.Create(ctx, lease))
		return
	}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &k.name, LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro())}
	k.check("renewing the lease", k.api.Update(ctx, lease))
}

// report sets the condition as the agent on the node does when the network is up.
func (k *soakKubelet) report(ctx context.Context) {
	ready := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status": {"conditions": [{"type": "`+testenv.Condition+`", "status": "True"}]}}`))
	k.check("reporting", k.reporter.Status().Patch(ctx, testenv.Node(k.name, nil), ready))
}

// completed reports whether the manager has nothing left to write on the node.
func (k *soakKubelet) completed(ctx context.Context) bool {
	node := k.read(ctx)
	return node != nil && node.Annotations[completedKey(k.once)] != "" && free(k.once)(node) && held(k.always)(node)
}
