package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

const tenantNamespace = "tenant"

// startTenant renews a lease with the name of the leader election, with the token of an account that has the
// ClusterRole edit in its own namespace and nothing else. It returns after the first renewal.
func startTenant(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "tenant"}}
	c.Create(t, account)
	// In a real cluster the controller manager copies the rules of these roles into edit.
	var parts rbacv1.ClusterRoleList
	if err := c.Client.List(t.Context(), &parts, client.MatchingLabels{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}); err != nil || len(parts.Items) == 0 {
		t.Fatalf("%d roles are aggregated to edit: %v", len(parts.Items), err)
	}
	for _, part := range parts.Items {
		c.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: part.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: part.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenantNamespace, Name: account.Name}},
		})
	}
	kubeconfig, _ := c.TokenKubeconfig(t, c.Token(t, tenantNamespace, account.Name, nil))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	as, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: v1alpha1.LeaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("evil\x1b[31m" + strings.Repeat("x", 10_000)), LeaseDurationSeconds: ptr.To[int32](1 << 30),
		},
	}
	testenv.Eventually(t, "the tenant to create a lease", func(ctx context.Context) error { return as.Create(ctx, lease) })
	renew := func(ctx context.Context) error {
		base := lease.DeepCopy()
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		return as.Patch(ctx, lease, client.MergeFrom(base))
	}
	if err := renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = renew(ctx)
			pause(ctx, 200*time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// gateRule returns a PodReadinessRule. The tests have no pods.
func gateRule(name string) *podv1alpha1.PodReadinessRule {
	return &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: podv1alpha1.PodReadinessRuleSpec{
			Components: []podv1alpha1.Component{{Name: "network", NodeCondition: &podv1alpha1.ConditionComponent{Type: testenv.Condition}}},
		},
	}
}

// eventuallyNotSole waits until the condition SoleController of both rules has this reason and names the namespace.
func eventuallyNotSole(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, pods *podv1alpha1.PodReadinessRule, reason, namespace string) {
	t.Helper()
	testenv.Eventually(t, "the condition "+reason, func(ctx context.Context) error {
		if err := errors.Join(c.Client.Get(ctx, client.ObjectKeyFromObject(rule), rule), c.Client.Get(ctx, client.ObjectKeyFromObject(pods), pods)); err != nil {
			return err
		}
		for _, conditions := range [][]metav1.Condition{rule.Status.Conditions, pods.Status.Conditions} {
			got := meta.FindStatusCondition(conditions, v1alpha1.ConditionSoleController)
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != reason || !strings.Contains(got.Message, namespace) {
				return fmt.Errorf("got %+v", got)
			}
		}
		return nil
	})
}

// showsNoOther waits until no rule has the condition SoleController.
func showsNoOther(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, pods *podv1alpha1.PodReadinessRule) {
	t.Helper()
	testenv.Eventually(t, "the condition SoleController to be removed", func(ctx context.Context) error {
		if err := errors.Join(c.Client.Get(ctx, client.ObjectKeyFromObject(rule), rule), c.Client.Get(ctx, client.ObjectKeyFromObject(pods), pods)); err != nil {
			return err
		}
		for _, conditions := range [][]metav1.Condition{rule.Status.Conditions, pods.Status.Conditions} {
			if got := meta.FindStatusCondition(conditions, v1alpha1.ConditionSoleController); got != nil {
				return fmt.Errorf("got %+v", got)
			}
		}
		return nil
	})
}

// hasMetric waits until the manager serves a line of metrics.
func hasMetric(t *testing.T, p *testenv.Process, line string) {
	t.Helper()
	testenv.Eventually(t, line, func(ctx context.Context) error {
		if _, body := get(ctx, p.Metrics, "/metrics"); !strings.Contains(body, "\n"+line+"\n") {
			return errors.New("not served")
		}
		return nil
	})
}

// waitsVisibly checks that a manager that waits for the lease in nrr-system reports this on rules and in its metrics.
func waitsVisibly(t *testing.T, c *testenv.Cluster, p *testenv.Process, rule *v1alpha1.NodeReadinessRule, pods *podv1alpha1.PodReadinessRule) {
	t.Helper()
	eventuallyNotSole(t, c, rule, pods, v1alpha1.ReasonWaitingForLease, "nrr-system")
	hasMetric(t, p, "node_readiness_waiting_for_lease 1")
}

// statusWrites returns the status writes of a user.
func statusWrites(t *testing.T, c *testenv.Cluster, user string) []testenv.Request {
	t.Helper()
	return slices.DeleteFunc(c.Requests(t, user), func(r testenv.Request) bool { return !r.IsWrite() || r.Subresource != "status" })
}

// A tenant that renews a lease in its own namespace does not prevent the manager from leading. The manager reports the
// namespace of the lease, but no text from it.
func TestATenantDoesNotKeepTheManagerFromLeading(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule, pods := testenv.Rule("tenant"), gateRule("tenant")
	c.Create(t, rule)
	c.Create(t, pods)
	c.CreateNode(t, testenv.Node("tenant", testenv.Pool(rule.Name)), corev1.ConditionFalse)
	startTenant(t, c)
	p := c.StartProcess(t, testenv.ManagerUser, elect...)
	c.EventuallyNode(t, "tenant", "held", held(rule))
	c.SetCondition(t, "tenant", testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, "tenant", "free", free(rule))
	ready(t, p)

	eventuallyNotSole(t, c, rule, pods, v1alpha1.ReasonOtherLease, "in namespaces "+testenv.ManagerNamespace+", "+tenantNamespace+";")
	hasMetric(t, p, "node_readiness_other_leases 1")
	hasMetric(t, p, "node_readiness_waiting_for_lease 0")
	if got := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionSoleController); strings.Contains(got.Message, "evil") {
		t.Errorf("the message contains text of the tenant: %q", got.Message)
	}
	if log := p.Log(); !strings.Contains(log, testenv.ManagerNamespace+", "+tenantNamespace) || strings.Contains(log, "evil") {
		t.Errorf("the log does not name the namespace, or contains text of the tenant:\n%s", log)
	}
	if !testenv.Enforced(rule) {
		t.Errorf("the lease of a tenant stops the enforcement: %+v", rule.Status.Conditions)
	}
}

// The lease of a tenant does not prevent the cleanup from removing everything.
func TestATenantDoesNotKeepTheCleanupFromWorking(t *testing.T) {
	t.Parallel()
	u := newInUse(t)
	u.manager.Terminate()
	startTenant(t, u.Cluster)
	cleanUp(t, u.Cluster, 0)
	u.wantWithdrawn(t)
	wantUninstalled(t, u.Cluster)
	wantPermitted(t, u.Cluster)
}

// A lease in a configured peer namespace prevents the manager from leading, whatever the name of the namespace.
func TestAPeerNamespaceBlocks(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule, pods := testenv.Rule("peer"), gateRule("peer")
	c.Create(t, rule)
	c.Create(t, pods)
	startTenant(t, c)
	p := c.StartProcess(t, testenv.ManagerUser, append([]string{"--leader-election-peer-namespaces=nrr-system," + tenantNamespace}, elect...)...)
	notReady(t, p, "leader", tenantNamespace)
	eventuallyNotSole(t, c, rule, pods, v1alpha1.ReasonWaitingForLease, tenantNamespace+"/"+v1alpha1.LeaseName)
}
