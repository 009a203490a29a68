package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

var elect = []string{"--leader-elect", "--leader-election-namespace", testenv.ManagerNamespace}

// Two managers run while conditions change continuously. At any time only one of them writes. After a clean stop the
// other one takes over soon, and after a crash when the lease has expired.
func TestNeverTwoWriters(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule := testenv.Rule("leader")
	c.Create(t, rule)
	c.Create(t, testenv.Node("leader", testenv.Pool(rule.Name)))
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = c.TrySetCondition(ctx, "leader", testenv.Condition, []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[i%2])
			pause(ctx, 20*time.Millisecond)
		}
	}()
	first := c.StartProcess(t, testenv.ManagerUser, elect...)
	writesAgain(t, c, testenv.ManagerUser)
	second := c.StartProcess(t, testenv.SecondManagerUser, elect...)
	ready(t, second)

	stopped := time.Now()
	if code := first.Terminate(); code != 0 {
		t.Errorf("the first manager ended with %d after SIGTERM", code)
	}
	writesAgain(t, c, testenv.SecondManagerUser)
	t.Logf("SIGTERM to the first write of the next leader: %v", firstWrite(t, c, testenv.SecondManagerUser).Sub(stopped).Round(time.Millisecond))

	third := c.StartProcess(t, testenv.ManagerUser, elect...)
	ready(t, third)
	second.Kill()
	writesAgain(t, c, testenv.ManagerUser)

	if got, want := writers(t, c), []string{testenv.ManagerUser, testenv.SecondManagerUser, testenv.ManagerUser}; !slices.Equal(got, want) {
		t.Errorf("the sequence of writers is %v, want %v", got, want)
	}
	if gap := firstWrite(t, c, testenv.SecondManagerUser).Sub(stopped); gap > 10*time.Second {
		t.Errorf("no leader for %v after a clean stop: the lease was not released", gap)
	}
}

// nodeWrites returns the PATCHes of nodes by both managers, in the order of arrival.
func nodeWrites(t *testing.T, c *testenv.Cluster) []testenv.Request {
	t.Helper()
	requests := slices.Concat(c.Requests(t, testenv.ManagerUser), c.Requests(t, testenv.SecondManagerUser))
	requests = slices.DeleteFunc(requests, func(r testenv.Request) bool { return r.Verb != "patch" || r.Resource != "nodes" })
	slices.SortFunc(requests, func(a, b testenv.Request) int { return a.At.Compare(b.At) })
	return requests
}

// writers returns the managers in the order in which they wrote.
func writers(t *testing.T, c *testenv.Cluster) []string {
	t.Helper()
	var users []string
	for _, request := range nodeWrites(t, c) {
		users = append(users, request.User)
	}
	return slices.Compact(users)
}

func firstWrite(t *testing.T, c *testenv.Cluster, user string) time.Time {
	t.Helper()
	for _, request := range nodeWrites(t, c) {
		if request.User == user {
			return request.At
		}
	}
	return time.Time{}
}

// writesAgain waits for a new write of the user.
func writesAgain(t *testing.T, c *testenv.Cluster, user string) {
	t.Helper()
	from := time.Now()
	testenv.Eventually(t, "a write by "+user, func(context.Context) error {
		if writes := nodeWrites(t, c); len(writes) == 0 || writes[len(writes)-1].User != user || writes[len(writes)-1].At.Before(from) {
			return errors.New("none yet")
		}
		return nil
	})
}

// ready waits until /readyz of the manager returns 200.
func ready(t *testing.T, p *testenv.Process) {
	t.Helper()
	testenv.Eventually(t, "readyz", func(ctx context.Context) error {
		if code, body := get(ctx, p.Health, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}

// get returns the response of a manager, or 0 and the error.
func get(ctx context.Context, address, path string) (int, string) {
	code, body, err := testenv.Get(ctx, "http://"+address+path)
	if err != nil {
		return 0, err.Error()
	}
	return code, body
}

// While another controller of this API is active in its own namespace, the manager waits, reports this, and changes no
// node. It takes over when the other controller has stopped.
func TestWaitsForAControllerInAnotherNamespace(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with leader election": elect, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testenv.StartCluster(t)
			rule := testenv.Rule("waiting")
			c.Create(t, rule)
			pods := gateRule(rule.Name)
			c.Create(t, pods)
			c.Create(t, testenv.Node("waiting", testenv.Pool(rule.Name)))
			stopOther := runOther(t, c)
			p := c.StartProcess(t, testenv.ManagerUser, args...)
			testenv.Eventually(t, "the log that the manager waits", func(context.Context) error {
				if !strings.Contains(p.Log(), "nrr-system/"+v1alpha1.LeaseName) {
					return errors.New(p.Log())
				}
				return nil
			})
			notReady(t, p, "leader", "nrr-system")
			waitsVisibly(t, c, p, rule, pods)
			if n := len(nodeWrites(t, c)); n > 0 {
				t.Errorf("%d writes while another controller was active", n)
			}
			managers := []*testenv.Process{p}
			if args != nil {
				managers = append(managers, c.StartProcess(t, testenv.SecondManagerUser, args...))
				notReady(t, managers[1], "leader", "nrr-system")
			}
			for _, user := range []string{testenv.ManagerUser, testenv.SecondManagerUser} {
				if n := len(statusWrites(t, c, user)); n > 2 {
					t.Errorf("%s wrote the status of 2 rules %d times while it waited", user, n)
				}
			}
			stopOther()
			c.EventuallyNode(t, "waiting", "held", held(rule))
			for _, manager := range managers { // one of them leads
				ready(t, manager)
			}
			showsNoOther(t, c, rule, pods)
		})
	}
}

// runOther renews a lease as another controller would.
func runOther(t *testing.T, c *testenv.Cluster) func() {
	t.Helper()
	c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nrr-system"}})
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "nrr-system", Name: v1alpha1.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("other"), LeaseDurationSeconds: ptr.To[int32](3)},
	}
	c.Create(t, lease)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			base := lease.DeepCopy()
			lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
			_ = c.Client.Patch(ctx, lease, client.MergeFrom(base))
			pause(ctx, 500*time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// notReady checks that the manager is alive, reports why it is not ready, and stays not ready.
func notReady(t *testing.T, p *testenv.Process, check, word string) {
	t.Helper()
	testenv.Eventually(t, "a manager that is alive and reports why it is not ready", func(ctx context.Context) error {
		if code, body := get(ctx, p.Health, "/healthz"); code != http.StatusOK {
			return fmt.Errorf("healthz: %d %s", code, body)
		}
		if code, body := get(ctx, p.Health, "/readyz/"+check); code == http.StatusOK || !strings.Contains(body, word) {
			return fmt.Errorf("readyz: %d %s", code, body)
		}
		return nil
	})
	for range 20 {
		if code, body := get(t.Context(), p.Health, "/readyz"); code == http.StatusOK {
			t.Fatalf("ready: %s", body)
		}
	}
}

// A manager that cannot read nodes is alive but not ready. It becomes ready when it has the right to read nodes.
func TestReadyOnlyWhenCachesAreSynced(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	const user = "blind"
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
		c.Create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	grant("rules",
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}})
	p := c.StartProcess(t, user, elect...)
	notReady(t, p, "caches", "not synced")
	grant("nodes", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"*"}})
	ready(t, p)
}

func TestAMissingCRDIsReported(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.Client.DeleteAllOf(t.Context(), crdObject()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "deletion of the CRD", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &v1alpha1.NodeReadinessRuleList{}); err == nil {
			return errors.New("it is still served")
		}
		return nil
	})
	p := c.StartProcess(t, testenv.ManagerUser)
	<-p.Done()
	if !strings.Contains(p.Log(), "install the CRD") {
		t.Errorf("the error does not contain the next step:\n%s", p.Log())
	}
}

// A manager that is stopped during a write waits for the response, also if the write is not to a node. It then releases
// its lease, so that the next leader does not have to wait until the lease expires.
func TestAStopWaitsForAWriteThatIsUnderWay(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	proxy := c.ManagerProxy(t)
	proxy.Set(testenv.Fault{Delay: 3 * time.Second, Of: func(a testenv.Arrival) bool { return a.What() == "patch nodereadinessrules/status" }})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, proxy.Config()); err != nil {
		t.Fatal(err)
	}
	manager := testenv.Start(t, "readygate-manager", nil, append([]string{"--kubeconfig", kubeconfig, "--health-probe-bind-address=0"}, elect...)...)
	rule := testenv.Rule(testenv.NameOf(t))
	c.Create(t, rule)
	testenv.Eventually(t, "a write of the status", func(context.Context) error {
		if proxy.Counts()["patch nodereadinessrules/status"] == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	manager.Terminate()

	var lease coordinationv1.Lease
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: testenv.ManagerNamespace, Name: v1alpha1.LeaseName}, &lease); err != nil {
		t.Fatal(err)
	}
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("%s has not released its lease:\n%s", holder, manager.Log())
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
		t.Fatal(err)
	}
	if rule.Status.ObservedGeneration != rule.Generation {
		t.Error("the status write was canceled")
	}
}
