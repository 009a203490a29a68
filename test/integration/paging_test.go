package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/paging"
	"github.com/readygate/readygate/internal/testkit"
)

// compacted are arguments of an API server that soon forgets old states.
var compacted = []string{"--etcd-compaction-interval=1s"}

// awaitExpiry waits until the API server has forgotten the state of nodes that is the latest one now.
// Continue tokens that refer to it have expired then.
func awaitExpiry(t *testing.T, c *testkit.Cluster) {
	t.Helper()
	var latest corev1.NodeList
	if err := c.Client.List(t.Context(), &latest, client.Limit(1)); err != nil {
		t.Error(err)
		return
	}
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "later-"}}
	c.Create(t, marker) // etcd keeps the latest state
	exact := &client.ListOptions{Limit: 1, Raw: &metav1.ListOptions{ResourceVersion: latest.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
	testkit.Eventually(t, "state "+latest.ResourceVersion+" to expire", func(ctx context.Context) error {
		if err := c.Client.List(ctx, &corev1.NodeList{}, exact); !apierrors.IsResourceExpired(err) {
			return fmt.Errorf("it has not (%v)", err)
		}
		return nil
	})
}

// A list whose continue token has expired between two pages goes on after the last object, and visits no
// object twice. New objects do not matter.
func TestAListGoesOnWhenItsContinueTokenExpires(t *testing.T) {
	t.Parallel()
	c := testkit.StartCluster(t, compacted...)
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("n%d", i)
		c.Create(t, testkit.Node(name, nil))
		want = append(want, name)
	}
	var got []string
	expired := 0
	for page, err := range paging.Pages(func(token string) (*corev1.NodeList, error) {
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
			c.Create(t, testkit.Node("n0-later", nil))
			awaitExpiry(t, c)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	if expired != 1 {
		t.Errorf("%d requests were answered with 410, want 1", expired)
	}
}
