// Package podgate tests the pod half against a real API server and etcd: the gates that the API
// server adds to pods, the agents that open them, and the manager on nodes without an agent.
//
// There are no kubelets and no components: tests simulate both. Most tests share one control plane and one
// manager; each has its own namespace, node, rules and gates, so they run in parallel.
package podgate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/testenv"
)

// latchImage is the image of the latch. No kubelet starts these pods.
const latchImage = "registry.example.com/readygate-podgate:test"

var shared = testenv.Shared{Setup: func(ctx context.Context, s *testenv.Shared) error {
	if err := errors.Join(served(ctx, s.Cluster), install(ctx, s.Cluster)); err != nil {
		return err
	}
	stop, err := runManager(s.Cluster, latchImage)
	s.StopWith(stop)
	return err
}}

func TestMain(m *testing.M) {
	// Tests wait more than they work. The flag -parallel still has an effect.
	if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), flag.Set("test.parallel", "8")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(shared.Main(m))
}

// cluster returns the control plane that tests share, with a manager running in this process.
func cluster(t *testing.T) *testenv.Cluster { return shared.Get(t) }

// served waits until the API server serves rules for pods.
func served(ctx context.Context, c *testenv.Cluster) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return c.Client.List(ctx, &v1alpha1.PodReadinessRuleList{}) == nil, nil
	})
}

// install installs what the chart installs in addition to the CRDs: policies, and the account of the
// agents with exactly the permissions of its generated roles.
func install(ctx context.Context, c *testenv.Cluster) error {
	roles, err := os.ReadFile(filepath.Join(testenv.Root(), "charts", "readygate", "files", "podgate-role.yaml"))
	if err != nil {
		return err
	}
	const account = admission.PodgateAccount // the roles have the same name
	inside, everywhere := metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: account}, metav1.ObjectMeta{Name: account}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: admission.ManagerNamespace, Name: account}}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: account}
	}
	return errors.Join(c.InstallPolicies(ctx), c.Apply(ctx, string(roles)),
		c.Client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: inside}),
		c.Client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: inside, Subjects: subjects, RoleRef: role("Role")}),
		c.Client.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: role("ClusterRole")}))
}

// runManager runs the manager in this process, with this image of the latch, until stop is called.
func runManager(c *testenv.Cluster, latch string, change ...func(*manager.Options)) (stop func() error, err error) {
	_, stop, err = c.RunManager(append(change, func(o *manager.Options) { o.LatchImage = latch })...)
	return stop, err
}
