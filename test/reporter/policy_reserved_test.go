package reporter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// reserve puts the reservation of the reporter's conditions in force.
func reserve(t *testing.T, c *testenv.Cluster, r admission.Reporter) {
	t.Helper()
	enforce(t, c, r.Reserved(), r.ReservedBinding(), func(ctx context.Context) error {
		probe := testenv.Node("probe", nil)
		probe.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeConditionType(r.Types[0]), Status: "True"}}
		return c.Client.Create(ctx, probe, client.DryRunAll)
	})
}

func TestOnlyTheReporterTouchesAReservedCondition(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	c.Create(t, busyNode(id, id))
	reporter := newReporter(t, c, id)
	own, absent := reporter.Types[0], reporter.Types[1]
	grant(t, c, guideRole(t, c, id), userOf(reporter.Namespace, reporter.Account))
	newAccount(t, c, reporter.Namespace, "plugin")
	grant(t, c, "cluster-admin", userOf(reporter.Namespace, "plugin"))
	grant(t, c, "cluster-admin", "jane-"+id)
	api := onNode(t, c, reporter.Namespace, reporter.Account, id)
	limit(t, c, reporter, api, id)
	reserve(t, c, reporter)
	for _, fields := range []string{`"status": "False"`, `"status": "True", "reason": "Up"`, `"lastHeartbeatTime": "2026-03-01T00:00:00Z"`} {
		if _, err := patchStatus(t.Context(), api, id, reports(condition(own, fields))); err != nil {
			t.Errorf("the reporter is refused: %v", err)
		}
	}
	refusal := func(conditions string) string {
		return "only system:serviceaccount:" + id + ":cni.reporter may add, change or remove the condition " + conditions +
			" of a node: leave it as it is, or delete the binding of this policy first"
	}
	for who, api := range map[string]kubernetes.Interface{
		"the kubelet":      as(t, c, "system:node:"+id, "system:nodes"),
		"another account":  onNode(t, c, reporter.Namespace, "plugin", id),
		"an administrator": as(t, c, "jane-"+id),
		"system:masters":   clientOf(t, c.Config),
	} {
		for name, tc := range map[string]struct{ patch, refusal string }{
			"other conditions":       {reports(condition("Ready", `"status": "False"`), condition("example.com/Other", `"status": "True"`)), ""},
			"the condition as it is": {reports(condition(own, `"status": "True"`)), ""},
			"changed":                {reports(condition(own, `"status": "False"`)), refusal(own)},
			"added":                  {reports(condition(absent, `"status": "True"`)), refusal(absent)},
			"removed":                {reports(condition(own, `"$patch": "delete"`)), refusal(own)},
		} {
			t.Run(who+": "+name, func(t *testing.T) {
				_, err := patchStatus(t.Context(), api, id, tc.patch, metav1.DryRunAll)
				wantAnswer(t, err, reporter.Reserved(), tc.refusal)
			})
		}
	}
	t.Run("registering", func(t *testing.T) { registersWithoutReserved(t, c, reporter, refusal(own)) })
}

// registersWithoutReserved registers a node, deletes it and registers it again.
func registersWithoutReserved(t *testing.T, c *testenv.Cluster, reporter admission.Reporter, refusal string) {
	id := nameOf(t)
	fresh := busyNode(id, id)
	fresh.Finalizers = nil // kubelets set none
	forged := fresh.DeepCopy()
	forged.Status.Conditions = append(forged.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(reporter.Types[0]), Status: "True"})
	for who, api := range map[string]kubernetes.Interface{"the kubelet": as(t, c, "system:node:"+id, "system:nodes"), "an administrator": clientOf(t, c.Config)} {
		nodes := api.CoreV1().Nodes()
		_, err := nodes.Create(t.Context(), forged, metav1.CreateOptions{})
		wantAnswer(t, err, reporter.Reserved(), refusal)
		if _, err := nodes.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s may not register a node: %v", who, err)
		}
		if err := c.Client.Delete(t.Context(), testenv.Node(id, nil)); err != nil {
			t.Errorf("the node cannot be deleted: %v", err)
		}
	}
}

// soakBeats is the number of kubelet reports in the soak, each sent in three ways.
const soakBeats = 200

// The API server accepts the requests of a kubelet while the reporter reports on the same node.
func TestReservedConditionsRejectNoRequestOfKubelets(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	reporter := newReporter(t, c, id)
	grant(t, c, guideRole(t, c, id), userOf(reporter.Namespace, reporter.Account))
	reserve(t, c, reporter)
	kubelet, node := as(t, c, "system:node:"+id, "system:nodes").CoreV1().Nodes(), testenv.Node(id, nil)
	beat(node, 0)
	if _, err := kubelet.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatalf("registering: %v", err)
	}
	api := onNode(t, c, reporter.Namespace, reporter.Account, id)
	limit(t, c, reporter, api, id)

	for i := 1; i <= soakBeats && !t.Failed(); i++ {
		stale, status := read(t, kubelet, id), []string{`"status": "True"`, `"status": "False"`}[i%2]
		wantPass(t, "a report", second(patchStatus(t.Context(), api, id, reports(condition(reporter.Types[0], status)))))
		wantPass(t, "a patch of what was read before it", patchBeat(t.Context(), kubelet, stale.DeepCopy(), 2*i))
		wantPass(t, "a replacement", replaceByBeat(t.Context(), kubelet, read(t, kubelet, id), 2*i+1))
		if err := replaceByBeat(t.Context(), kubelet, stale, 2*i); !apierrors.IsConflict(err) { // with which kubelets live
			t.Errorf("a replacement of what was read before: %v", err)
		}
	}
	node = read(t, kubelet, id)
	if len(node.Status.Conditions) != 5 || conditionOf(node, reporter.Types[0]) == nil {
		t.Errorf("the node ends with %+v", node.Status.Conditions)
	}
}

func read(t *testing.T, nodes corev1client.NodeInterface, name string) *corev1.Node {
	t.Helper()
	node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func wantPass(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// beat changes what a kubelet reports with every heartbeat, and from time to time.
func beat(node *corev1.Node, i int) {
	now := metav1.NewTime(time.Unix(int64(1772323200+i), 0))
	for _, conditionType := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		known := conditionOf(node, string(conditionType))
		if known == nil {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: conditionType})
			known = &node.Status.Conditions[len(node.Status.Conditions)-1]
		}
		known.Status, known.LastHeartbeatTime, known.Message = []corev1.ConditionStatus{"True", "False"}[i&1], now, strconv.Itoa(i)
	}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(8+i%3), resource.DecimalSI)}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	node.Status.Images = nil
	for n := range 20 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("example.com/image-%d:%d", n, i)}})
	}
}

// patchBeat sends a strategic merge patch of the changes, like kubelets.
func patchBeat(ctx context.Context, kubelet corev1client.NodeInterface, node *corev1.Node, i int) error {
	old, err := json.Marshal(node)
	if err != nil {
		return err
	}
	beat(node, i)
	changed, err := json.Marshal(node)
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, changed, corev1.Node{})
	if err != nil {
		return err
	}
	return second(kubelet.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// replaceByBeat replaces the status, like old kubelets and controllers.
func replaceByBeat(ctx context.Context, kubelet corev1client.NodeInterface, node *corev1.Node, i int) error {
	beat(node, i)
	return second(kubelet.UpdateStatus(ctx, node, metav1.UpdateOptions{}))
}

// The controller manager checks the expressions of validating policies against the types of
// the resources that they match: it reports no warnings for these policies.
func TestNoPolicyOfAReporterHasATypeWarning(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	reporter := admission.Reporter{Namespace: "kube-system", Account: "reporter", Types: []string{"example.com/Ready"}}
	for _, p := range []*admissionv1.ValidatingAdmissionPolicy{reporter.Policy(), reporter.Reserved(), admission.OwnNode("kube-system", "plugin")} {
		c.Create(t, p)
		testenv.Eventually(t, p.Name+" to be checked", func(ctx context.Context) error {
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.Status.TypeChecking == nil {
				return fmt.Errorf("%w: the status is %+v", err, p.Status)
			}
			return nil
		})
		if warnings := p.Status.TypeChecking.ExpressionWarnings; len(warnings) > 0 {
			t.Errorf("%s: %+v", p.Name, warnings)
		}
	}
}
