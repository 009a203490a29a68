package reporter_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

const hangup = syscall.SIGHUP

// requests returns the requests of the reporter so far.
func (s *station) requests(t *testing.T) []testenv.Request {
	t.Helper()
	return s.Requests(t, userOf(s.namespace, s.account))
}

// wantOnlyPatches fails if the reporter sent a request other than a PATCH of its node's
// status.
func (s *station) wantOnlyPatches(t *testing.T) {
	t.Helper()
	all := s.requests(t)
	if len(all) < 5 {
		t.Errorf("only %d requests were seen", len(all))
	}
	for _, r := range all {
		if r.Verb != "patch" || r.Resource != "nodes" || r.Subresource != "status" || r.Name != s.node {
			t.Errorf("it asked for %s %s/%s %q", r.Verb, r.Resource, r.Subresource, r.Name)
		}
	}
}

// In all failures, a reporter sends only one kind of request, and its latest state is written in the end.
func TestAReporterOnlyEverPatchesItsNodesStatus(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	s, e := newStation(t, c), newEndpoint(t, http.StatusServiceUnavailable)
	p := s.start(t, e, "HEARTBEAT_PERIOD=1s", "CHECK_INTERVAL=100ms")

	down := s.eventually(t, networkReady, "False at the start", is(corev1.ConditionFalse))
	s.eventually(t, networkReady, "a heartbeat", func(c *corev1.NodeCondition) bool { return c.LastHeartbeatTime.After(down.LastHeartbeatTime.Time) })

	// The API server goes away; what becomes true meanwhile is written when it is back.
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	asked := e.hits.Load()
	e.answer(http.StatusOK)
	testenv.Eventually(t, "checks while the API server is away", func(context.Context) error {
		if e.hits.Load() < asked+3 {
			return fmt.Errorf("%d so far", e.hits.Load()-asked)
		}
		return nil
	})
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, networkReady, "True when the API server is back", is(corev1.ConditionTrue))

	s.rotate(t)
	s.recreate(t)
	p.Terminate()
	s.wantOnlyPatches(t)
}

// rotate gives the reporter another token, and invalidates the old one by deleting its pod.
func (s *station) rotate(t *testing.T) {
	t.Helper()
	old := s.pod
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "second"}, Spec: *old.Spec.DeepCopy()}
	s.Create(t, second)
	if err := os.WriteFile(s.tokenFile, []byte(s.Token(t, s.namespace, s.account, second)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.remove(t, old)
	before := metav1.Now()
	s.eventually(t, networkReady, "a heartbeat with the new token", func(c *corev1.NodeCondition) bool { return c.LastHeartbeatTime.After(before.Time) })
	s.pod = second
}

func (s *station) remove(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	zero := int64(0)
	if err := clientOf(t, s.Config).CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
}

// recreate deletes the node and creates it again, first immediately and then after a while.
func (s *station) recreate(t *testing.T) {
	t.Helper()
	for _, wait := range []bool{false, true} {
		nodes := clientOf(t, s.Config).CoreV1().Nodes()
		if err := nodes.Delete(t.Context(), s.node, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if wait {
			testenv.Eventually(t, "the reporter to find no node", func(context.Context) error {
				all := s.requests(t)
				if last := all[len(all)-1]; last.Code != http.StatusNotFound {
					return fmt.Errorf("the last answer was %d", last.Code)
				}
				return nil
			})
		}
		created, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.eventually(t, networkReady, "on the new node, since its creation at most", func(c *corev1.NodeCondition) bool {
			return c.Status == corev1.ConditionTrue && !c.LastTransitionTime.Before(&created.CreationTimestamp)
		})
	}
}

// The role may be created after the reporter starts, as in the guides.
func TestAReporterWaitsForItsRole(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	s := newPowerlessStation(t, c, nameOf(t))
	p := s.start(t, newEndpoint(t, http.StatusOK))
	testenv.Eventually(t, "a hint about the role", func(context.Context) error {
		if log := p.Log(); !contains(log, "nodes/status", "the API server returned 403") {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
	grant(t, c, guideRole(t, c, s.node), userOf(s.namespace, s.account))
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
}

// An account that may only impersonate its node reports as the node.
func TestAReporterMayActAsItsNode(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	if c.ServerVersion(t).LessThan(version.MajorMinor(1, 36)) {
		t.Skip(testenv.Unavailable + "constrained impersonation is enabled by default since Kubernetes 1.36")
	}
	s := newPowerlessStation(t, c, nameOf(t))
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.node}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"nodes"}, Verbs: []string{"impersonate:associated-node"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"impersonate-on:associated-node:patch"}},
	}})
	grant(t, c, s.node, userOf(s.namespace, s.account))
	p := s.start(t, newEndpoint(t, http.StatusOK), "IMPERSONATE_NODE=true")
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	p.Kill()
	// Without it, the account may do nothing.
	q := s.start(t, newEndpoint(t, http.StatusServiceUnavailable))
	testenv.Eventually(t, "a refusal", func(context.Context) error {
		if log := q.Log(); !contains(log, "the API server returned 403") {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
}

func contains(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// A condition that the API server rejects does not block the others: here one that was added to the
// file but not to the policy.
func TestARejectedConditionDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	s, e := newStation(t, c), newEndpoint(t, http.StatusOK)
	reporter := admission.Reporter{Namespace: s.namespace, Account: s.account, Types: []string{networkReady}}
	limit(t, c, reporter, withToken(t, c, c.Token(t, s.namespace, s.account, s.pod)), s.node)
	file := filepath.Join(t.TempDir(), "config.yaml")
	config := fmt.Sprintf(`apiVersion: readygate.dev/v1alpha1
kind: ReporterConfig
heartbeatPeriod: 1s
checks:
- {conditionType: example.com/Forgotten, http: {url: %q}}
- {conditionType: %s, interval: 100ms, failureThreshold: 1, holdDown: 0s, http: {url: %q}}
`, e.URL, networkReady, e.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testenv.StartReporter(t, s.kubeconfig, nil, "--config", file)
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	e.answer(http.StatusServiceUnavailable)
	down := s.eventually(t, networkReady, "False", is(corev1.ConditionFalse))
	s.eventually(t, networkReady, "a heartbeat", func(c *corev1.NodeCondition) bool { return c.LastHeartbeatTime.After(down.LastHeartbeatTime.Time) })
	if forgotten, err := s.condition(t.Context(), "example.com/Forgotten"); err != nil || forgotten != nil {
		t.Errorf("the other is %+v, %v", forgotten, err)
	}
	if log := p.Log(); !contains(log, "example.com/Forgotten", "an admission policy rejects the write") {
		t.Errorf("the log is %s", log)
	}
}
