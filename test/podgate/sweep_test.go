package podgate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

// bareCluster is the test's own control plane with everything that the chart installs, except
// for a manager.
func bareCluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	c := testenv.StartCluster(t)
	if err := errors.Join(served(t.Context(), c), install(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	return c
}

// startManager starts the manager's binary with leader election. It reaches the API server through the
// proxy.
func startManager(t *testing.T, proxy *testenv.Proxy) *testenv.Process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, proxy.Config()); err != nil {
		t.Fatal(err)
	}
	health, metrics := testenv.FreeAddress(t), testenv.FreeAddress(t)
	p := testenv.Start(t, "readygate-manager", nil, "--kubeconfig", kubeconfig, "--latch-image", latchImage, "--leader-elect",
		"--leader-election-namespace", testenv.ManagerNamespace, "--health-probe-bind-address", health, "--metrics-bind-address", metrics)
	p.Health, p.Metrics = health, metrics
	return p
}

// A manager that stops during a sweep releases its lease, and the next leader repeats the
// sweep: the finalizer of the deleted rule is there until all of its pods are open.
func TestASweepEndsWithTheManager(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	proxy := c.ManagerProxy(t)
	leader := startManager(t, proxy)
	s := stageOn(t, c)
	rule := s.rule("web")
	s.enforce(rule)
	var pods []*corev1.Pod
	for i := range 12 {
		pods = append(pods, s.pod("web", named("web-"+strconv.Itoa(i)), unscheduled))
	}
	const opens = "patch pods/status"
	proxy.Set(testenv.Fault{Delay: 2 * time.Second, Of: func(a testenv.Arrival) bool { return a.What() == opens }})
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "a sweep that opens its second pod", func(context.Context) error {
		if opened := proxy.Counts()[opens]; opened < 2 {
			return fmt.Errorf("%d requests so far", opened)
		}
		return nil
	})
	if code := leader.Terminate(); code != 0 {
		t.Errorf("the manager ends with code %d", code)
	}
	var lease coordinationv1.Lease
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: testenv.ManagerNamespace, Name: nodev1alpha1.LeaseName}, &lease); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("%s has not released its lease:\n%s", holder, leader.Log())
	}
	waiting := 0
	for _, pod := range pods {
		if gateOf(s.get(pod), rule.Spec.Gate) == absent {
			waiting++
		}
	}
	got := &v1alpha1.PodReadinessRule{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), got); err != nil || waiting == 0 {
		t.Fatalf("the rule is gone (%v), or the sweep has ended: %d pods wait", err, waiting)
	}

	proxy.Set(testenv.Fault{})
	startManager(t, proxy)
	s.wantGone(rule)
	for _, pod := range pods {
		if err := complaint(s.get(pod), rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted); err != nil {
			t.Errorf("%s: %v", pod.Name, err)
		}
	}
}

// If several rules are deleted at once, the manager lists the pods of the cluster once.
func TestRulesThatAreDeletedTogetherShareOneSweep(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	s := stageOn(t, c)
	var rules []*v1alpha1.PodReadinessRule
	for i := range 8 {
		rules = append(rules, s.rule("web-"+strconv.Itoa(i)))
	}
	s.enforce(rules...)
	pods := map[*v1alpha1.PodReadinessRule]*corev1.Pod{}
	for i, rule := range rules {
		pods[rule] = s.pod("web-"+strconv.Itoa(i), unscheduled)
	}
	for _, rule := range rules {
		if err := c.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range rules {
		s.wantGone(rule)
		if err := complaint(s.get(pods[rule]), rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted); err != nil {
			t.Error(err)
		}
	}
	if lists := len(sweepsOf(t, c)); lists != 1 {
		t.Errorf("the pods of the cluster were listed %d times, want once", lists)
	}
}

// sweepsOf returns the times at which the manager started to list all pods of the cluster.
func sweepsOf(t *testing.T, c *testenv.Cluster) (began []time.Time) {
	t.Helper()
	c.Audited(t, testenv.ManagerUser, func(event *auditv1.Event) {
		if event.Verb == "list" && event.ObjectRef != nil && event.ObjectRef.Resource == "pods" && !strings.Contains(event.RequestURI, "fieldSelector=") {
			began = append(began, event.RequestReceivedTimestamp.Time)
		}
	})
	return began
}

// A failed sweep lists all pods again with backoff, opens all other pods, and ends when the
// last pod can be written.
func TestAFailingSweepIsRepeatedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	proxy := c.ManagerProxy(t)
	startManager(t, proxy)
	s := stageOn(t, c)
	rule := s.rule("web")
	s.enforce(rule)
	refused, other := s.pod("web", named("refused"), unscheduled), s.pod("web", named("other"), unscheduled)
	proxy.Set(testenv.Fault{Code: http.StatusForbidden, Of: func(a testenv.Arrival) bool { return a.What() == "patch pods/status" && a.Name == refused.Name }})
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	var sweeps []time.Time
	testenv.Eventually(t, "the third sweep", func(context.Context) error {
		if sweeps = sweepsOf(t, c); len(sweeps) < 3 {
			return fmt.Errorf("%d so far", len(sweeps))
		}
		return nil
	})
	for i := range sweeps[1:] {
		if pause := sweeps[i+1].Sub(sweeps[i]); pause < time.Second<<i {
			t.Errorf("sweep %d began %v after the one before, want at least %v", i+2, pause, time.Second<<i)
		}
	}
	s.wantGate(other, rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted)
	proxy.Set(testenv.Fault{})
	s.wantGone(rule)
	s.wantGate(refused, rule.Spec.Gate, "True "+v1alpha1.ReasonRuleDeleted)
}
