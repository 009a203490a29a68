package reporter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// newReporter returns a reporter of two conditions, with an account in its own namespace.
func newReporter(t *testing.T, c *testenv.Cluster, id string) admission.Reporter {
	t.Helper()
	r := admission.Reporter{Namespace: id, Account: "cni.reporter", Types: []string{id + "/Ready", id + "/RoutesReady"}}
	c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace}})
	newAccount(t, c, r.Namespace, r.Account)
	return r
}

func newAccount(t testing.TB, c *testenv.Cluster, namespace, account string) {
	t.Helper()
	c.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
}

// userOf returns the user name of the account.
func userOf(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// grant binds a cluster role to a user.
func grant(t testing.TB, c *testenv.Cluster, role, user string) {
	t.Helper()
	c.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// guideRole is the role that the guide grants to reporters.
func guideRole(t testing.TB, c *testenv.Cluster, name string) string {
	t.Helper()
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch", "update"}},
	}})
	return name
}

// onNode returns a client of the account with the token of a pod on the node, as the kubelet mounts it.
func onNode(t *testing.T, c *testenv.Cluster, namespace, account, node string) kubernetes.Interface {
	t.Helper()
	return withToken(t, c, c.Token(t, namespace, account, c.Pod(t, namespace, account, node)))
}

// loose returns a client of the account with a token that is not bound to a pod.
func loose(t *testing.T, c *testenv.Cluster, namespace, account string) kubernetes.Interface {
	t.Helper()
	return withToken(t, c, c.Token(t, namespace, account, nil))
}

func withToken(t *testing.T, c *testenv.Cluster, token string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	return clientOf(t, config)
}

// as returns a client of a user with a certificate.
func as(t *testing.T, c *testenv.Cluster, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	config, err := c.ControlPlane.Config(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// enforce installs a policy and its binding, and waits until the API server rejects the violation.
func enforce(t *testing.T, c *testenv.Cluster, p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding, violate func(context.Context) error) {
	t.Helper()
	c.Create(t, p)
	c.Create(t, b)
	testenv.Eventually(t, p.Name+" to act", func(ctx context.Context) error {
		if err := violate(ctx); !refusedBy(err, p) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

// limit puts the policy of the reporter in force.
func limit(t *testing.T, c *testenv.Cluster, r admission.Reporter, api kubernetes.Interface, node string) {
	t.Helper()
	enforce(t, c, r.Policy(), r.Binding(), func(ctx context.Context) error {
		return second(patchStatus(ctx, api, node, `{"metadata": {"labels": {"probe": ""}}}`, metav1.DryRunAll))
	})
}

// refusedBy reports whether an error is a rejection by the policy.
func refusedBy(answer error, p *admissionv1.ValidatingAdmissionPolicy) bool {
	return apierrors.IsForbidden(answer) && strings.Contains(answer.Error(), "ValidatingAdmissionPolicy '"+p.Name+"'")
}

// wantAnswer checks that a request was accepted if refusal is empty, and otherwise that the policy
// rejected it with this text.
func wantAnswer(t *testing.T, answer error, p *admissionv1.ValidatingAdmissionPolicy, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && answer != nil:
		t.Errorf("refused: %v", answer)
	case refusal != "" && (!refusedBy(answer, p) || !strings.Contains(answer.Error(), refusal)):
		t.Errorf("must be refused because of %q, got %v", refusal, answer)
	}
}

// second returns the error of a call that also returns a value.
func second[T any](_ T, err error) error { return err }

// patchStatus sends a strategic merge patch of the status, like reporters.
func patchStatus(ctx context.Context, api kubernetes.Interface, node, body string, dryRun ...string) (*corev1.Node, error) {
	return api.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun}, "status")
}

// reports is the patch that reports conditions.
func reports(conditions ...string) string {
	return `{"status": {"conditions": [` + strings.Join(conditions, ", ") + `]}}`
}

// condition is a condition with these fields, as JSON.
func condition(conditionType, fields string) string {
	return fmt.Sprintf(`{"type": %q, %s}`, conditionType, fields)
}

func conditionOf(node *corev1.Node, conditionType string) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeConditionType(conditionType) {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// busyNode returns a node with values of other writers in everything that its status endpoint can change.
func busyNode(name, test string) *corev1.Node {
	node := testenv.Node(name, map[string]string{"example.com/test": test})
	node.Annotations = map[string]string{"example.com/note": "a"}
	node.Finalizers = []string{"example.com/keep"}
	node.Status.Conditions = []corev1.NodeCondition{{Type: "MemoryPressure", Status: "False"}, {Type: "Ready", Status: "True"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"example.com/image"}}}
	return node
}
