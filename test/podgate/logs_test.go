package podgate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/readygate/readygate/internal/testenv"
)

// The programs of this build work on this version of Kubernetes: what its API server lacks causes no errors in their logs.
func TestProgramsOfThisBuildLogNoErrors(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	manager := c.StartProcess(t, testenv.ManagerUser, "--latch-image", latchImage)
	s := stageOn(t, c)
	kubeconfig, _ := c.TokenKubeconfig(t, s.identity(s.id).BearerToken)
	agent := testenv.Start(t, "readygate-podgate", nil, "--kubeconfig", kubeconfig, "--node-name", s.id, "--holder", "agent",
		"--health-probe-bind-address", testenv.FreeAddress(t), "--metrics-bind-address", testenv.FreeAddress(t))
	reporter := startReporter(t, s)

	held, pods := testenv.Rule(s.id), s.rule("web", ofTemplates)
	c.Create(t, held)
	c.Create(t, pods)
	pod := s.pod("web", fromTemplate)
	node := testenv.Node(s.id+"-held", testenv.Pool(s.id))
	c.CreateNode(t, node, "")
	c.EventuallyNode(t, node.Name, "held", func(n *corev1.Node) bool { return testenv.HasTaint(n, held.Spec.Taint.Key) })
	s.sandbox(pod, "127.0.15.1", longAgo())
	s.wantGate(pod, pods.Spec.Gate, waits)
	if !c.ServesMutatingPolicies(t) {
		wantLooksAgain(t, c)
	}
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node.Name, "released", func(n *corev1.Node) bool { return !testenv.HasTaint(n, held.Spec.Taint.Key) })
	s.says(pod, corev1.ConditionTrue)
	s.wantGate(pod, pods.Spec.Gate, allReady)

	for name, p := range map[string]*testenv.Process{"manager": manager, "podgate": agent, "reporter": reporter} {
		if p.Log() == "" {
			t.Errorf("%s: the log is empty", name)
		}
		for line := range strings.Lines(p.Log()) {
			if strings.Contains(line, `"level":"error"`) || strings.Contains(line, "level=ERROR") || !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "time=") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// wantLooksAgain waits until the manager looks for the API again, which it does every minute.
func wantLooksAgain(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	quiet := time.Now().Add(30 * time.Second)
	testenv.Eventually(t, "the manager to look for the API again", func(context.Context) error {
		again := false
		c.Audited(t, testenv.ManagerUser, func(e *auditv1.Event) {
			again = again || strings.HasSuffix(e.RequestURI, "/apis/admissionregistration.k8s.io/v1beta1") && e.RequestReceivedTimestamp.After(quiet)
		})
		if !again {
			return errors.New("not yet")
		}
		return nil
	})
}

// startReporter starts a reporter that reports a condition of the node of the stage.
func startReporter(t *testing.T, s *stage) *testenv.Process {
	t.Helper()
	const account = "reporter"
	inside := metav1.ObjectMeta{Namespace: s.id, Name: account}
	s.Create(t, &corev1.ServiceAccount{ObjectMeta: inside})
	everywhere := metav1.ObjectMeta{Name: s.id + "-" + account}
	s.Create(t, &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
	}})
	s.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: everywhere, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: everywhere.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.id, Name: account}},
	})
	kubeconfig, _ := s.TokenKubeconfig(t, s.Token(t, s.id, account, s.Pod(t, s.id, account, s.id)))
	p := testenv.StartReporter(t, kubeconfig, []string{"CONDITION_TYPE=example.com/NetworkReady", "CHECK_ENDPOINT=" + newEndpoint(t).url})
	s.EventuallyNode(t, s.id, "reported", func(n *corev1.Node) bool {
		for _, condition := range n.Status.Conditions {
			if condition.Type == "example.com/NetworkReady" {
				return true
			}
		}
		return false
	})
	return p
}
