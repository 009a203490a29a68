package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/liveread"
	"github.com/readygate/readygate/internal/testenv"
)

// compacted are the arguments of an API server that compacts old revisions soon.
var compacted = []string{"--etcd-compaction-interval=1s"}

// awaitExpiry waits until the API server has compacted the current revision of nodes. Continue tokens of that revision
// have then expired.
func awaitExpiry(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	var latest corev1.NodeList
	if err := c.Client.List(t.Context(), &latest, client.Limit(1)); err != nil {
		t.Error(err)
		return
	}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "later-"}}
	c.Create(t, marker) // etcd keeps the latest revision
	exact := &client.ListOptions{Limit: 1, Raw: &metav1.ListOptions{ResourceVersion: latest.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
	testenv.Eventually(t, "revision "+latest.ResourceVersion+" to expire", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &corev1.NodeList{}, exact); !apierrors.IsResourceExpired(err) {
			return fmt.Errorf("it has not expired (%v)", err)
		}
		return nil
	})
}

// If the continue token of a list expires between two pages, the list continues after the last object and visits no
// object twice, also if objects were created meanwhile.
func TestAListGoesOnWhenItsContinueTokenExpires(t *testing.T) {
	t.Parallel()
	c := testenv.StartOwnCluster(t, compacted...)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("n%d", i)
		c.Create(t, testenv.Node(name, nil))
		want = append(want, name)
	}
	var got []string
	expired := 0
	for page, err := range liveread.Pages(func(token string) (*corev1.NodeList, error) {
		list := &corev1.NodeList{}
		err := c.Client.List(t.Context(), list, client.Limit(3), client.Continue(token))
		if apierrors.IsResourceExpired(err) {
			expired++
		}
		return list, err
	}) {
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		for i := range page.Items {
			got = append(got, page.Items[i].Name)
		}
		if expired == 0 {
			c.Create(t, testenv.Node("n0-later", nil))
			awaitExpiry(t, c)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if expired != 1 {
		t.Errorf("%d responses with 410, want 1", expired)
	}
}

// If the manager's list of all nodes takes longer than the API server keeps the revision, the manager still counts all
// held nodes, and none twice.
func TestMaxUnavailableCountsNodesOnceWhenAListExpires(t *testing.T) {
	t.Parallel()
	const fleet, limit = 205, 3 // more than a page
	c := testenv.StartOwnCluster(t, compacted...)
	name := testenv.NameOf(t)
	node := func(i int) string { return fmt.Sprintf("%s-%03d", name, i) }
	for i := range fleet {
		i = fleet - 1 - i // those of the second page are the oldest, and older than the rule
		c.CreateNode(t, testenv.Node(node(i), testenv.Pool(name)), corev1.ConditionTrue)
	}
	rule := testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(limit)) })
	c.Create(t, rule)
	proxy := c.ManagerProxy(t)
	var first atomic.Bool // the last request was for a first page
	proxy.Set(testenv.Fault{
		Of: func(a testenv.Arrival) bool {
			// The second page of every list expires. The page after an expired one is not delayed.
			return a.What() == "list nodes" && first.Swap(!a.Continues) && a.Continues
		},
		Hold: func(context.Context) { awaitExpiry(t, c) },
	})
	away := watchAway(t, c, rule, func(n string) bool { return strings.HasPrefix(n, name+"-") })
	_, stop := testenv.RunManager(proxy.Config())
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	c.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	for i := range 2 * limit {
		c.SetCondition(t, node(fleet-1-i), testenv.Condition, corev1.ConditionFalse)
	}
	testenv.Eventually(t, "as many held nodes as maxUnavailable allows", func(context.Context) error {
		if now := away.now(); len(now) != limit {
			return errors.New(strings.Join(now, ", "))
		}
		return nil
	})
	c.EventuallyRule(t, rule.Name, "limited", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonLimited))
	if most := away.mostEver(); most != limit {
		t.Errorf("%d nodes were held at the same time, want %d", most, limit)
	}
	gone := 0
	for _, r := range c.Requests(t, testenv.ManagerUser) {
		if r.Verb == "list" && r.Resource == "nodes" && r.Code == http.StatusGone {
			gone++
		}
	}
	if gone == 0 {
		t.Error("no continue token has expired")
	}
}
