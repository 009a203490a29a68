package views_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/testenv"
)

// source reads as this user.
func source(t *testing.T, c *testenv.Cluster, user string, groups ...string) *live.Source {
	t.Helper()
	config, err := c.ControlPlane.Config(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := live.NewSource(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const administrators = "system:masters"

// nextLine waits for a matching delta, and returns all deltas until then.
func nextLine(t *testing.T, follower *live.Follower, what string, wanted func(live.Delta) bool) []live.Delta {
	t.Helper()
	var seen []live.Delta
	testenv.Eventually(t, what, func(ctx context.Context) error {
		select {
		case <-follower.Changed():
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
			return fmt.Errorf("seen so far: %+v", seen)
		}
		delta := follower.Take()
		seen = append(seen, delta)
		if !wanted(delta) {
			return fmt.Errorf("seen so far: %+v", seen)
		}
		return nil
	})
	return seen
}

func lineOf(name string, wanted func(view.Node) bool) func(live.Delta) bool {
	return func(delta live.Delta) bool {
		for _, line := range delta.Nodes {
			if line.Name == name && wanted(line) {
				return true
			}
		}
		return false
	}
}

func TestAFleetIsFollowed(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.Create(t, testenv.Rule("followed"))
	c.Create(t, testenv.Node("first", testenv.Pool("followed")))
	fleet, err := source(t, c, "admin", administrators).Follow(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	follower, before := fleet.Follow()
	defer follower.Stop()
	if len(before.Nodes) != 1 || len(before.Rules) != 1 || before.Rules[0].Count.Selected != 1 || before.Rules[0].Standing != view.Unobserved || before.Nodes[0].Settled {
		t.Errorf("before: %+v", before)
	}

	c.Create(t, testenv.Node("second", testenv.Pool("followed")))
	seen := nextLine(t, follower, "a new node", lineOf("second", func(n view.Node) bool { return n.State == noderule.Released }))
	for _, delta := range seen {
		for _, line := range delta.Nodes {
			if line.Name != "second" {
				t.Errorf("received %s, which did not change", line.Name)
			}
		}
	}

	c.SetCondition(t, "second", testenv.Condition, corev1.ConditionTrue)
	nextLine(t, follower, "a condition", lineOf("second", func(n view.Node) bool {
		return len(n.Rules) == 1 && n.Rules[0].State == noderule.Released && !n.Rules[0].Met.IsZero()
	}))

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	c.Create(t, pod)
	nextLine(t, follower, "a pod that waits", func(d live.Delta) bool { return d.Waiting != nil && *d.Waiting == 1 })
	if err := c.Client.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	nextLine(t, follower, "the pod on its node", func(d live.Delta) bool { return d.Waiting != nil && *d.Waiting == 0 })

	if err := c.Client.Delete(t.Context(), testenv.Node("second", nil)); err != nil {
		t.Fatal(err)
	}
	nextLine(t, follower, "a node that goes", func(d live.Delta) bool { return len(d.Gone) == 1 && d.Gone[0] == "second" })
	after := fleet.Snapshot()
	if len(after.Nodes) != 1 || after.Rules[0].Count.Selected != 1 || after.Waiting == nil || *after.Waiting != 0 {
		t.Errorf("after: %+v", after)
	}
}

// Most updates of nodes are heartbeats.
func TestHeartbeatCausesNoChange(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.CreateNode(t, testenv.Node("beats", testenv.Pool("beats")), corev1.ConditionTrue)
	c.Create(t, testenv.Rule("beats"))
	fleet, err := source(t, c, "admin", administrators).Follow(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	follower, _ := fleet.Follow()
	defer follower.Stop()
	node := testenv.Node("beats", nil)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Hour))
	}
	if err := c.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	c.Create(t, testenv.Node("later", testenv.Pool("beats")))
	for _, delta := range nextLine(t, follower, "what came after", lineOf("later", func(view.Node) bool { return true })) {
		if lineOf("beats", func(view.Node) bool { return true })(delta) {
			t.Errorf("a heartbeat was received as a change: %+v", delta)
		}
	}
}

// readOnly may only read rules and nodes.
func readOnly(t *testing.T, c *testenv.Cluster, user string) {
	t.Helper()
	read := []string{"get", "list", "watch"}
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read},
		{APIGroups: []string{"readiness.node.x-k8s.io"}, Resources: []string{"nodereadinessrules"}, Verbs: read},
	}})
	c.Create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}})
}

func TestReadOnlyRightsAreEnough(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	readOnly(t, c, "reader")
	c.Create(t, testenv.Rule("read"))
	c.Create(t, testenv.Node("read", testenv.Pool("read")))
	reader := source(t, c, "reader")
	var fleet *live.Fleet
	testenv.Eventually(t, "the role to be known", func(context.Context) (err error) {
		fleet, err = reader.Follow(t.Context(), true)
		return err
	})
	snapshot := fleet.Snapshot()
	if len(snapshot.Nodes) != 1 || snapshot.Waiting != nil || len(snapshot.Unseen) != 1 || !strings.Contains(snapshot.Unseen[0], "list pods") {
		t.Errorf("the fleet: %+v", snapshot)
	}
	explanation, err := reader.Explanation(t.Context(), "read")
	if err != nil {
		t.Fatal(err)
	}
	if len(explanation.Unseen) != 1 || !strings.Contains(explanation.Unseen[0], "list events") || len(explanation.Chapters) != 1 {
		t.Errorf("the explanation: %+v", explanation)
	}
}

// Each error names the next step.
func TestReadErrorsNameTheNextStep(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	bare, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: testenv.Binaries()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bare.Stop() })
	empty, err := testenv.Connect(bare)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		read func() error
		want string
	}{
		"no rights": {func() error { _, err := source(t, c, "unprivileged").Follow(t.Context(), false); return err }, "ask for a role"},
		"no such node": {func() error {
			_, err := source(t, c, "admin", administrators).Explanation(t.Context(), "nowhere")
			return err
		}, `there is no node "nowhere"`},
		"no CRD": {func() error {
			_, err := source(t, empty, "admin", administrators).Rules(t.Context())
			return err
		}, "install Readygate"},
		"no CRD to follow": {func() error {
			_, err := source(t, empty, "admin", administrators).Follow(t.Context(), false)
			return err
		}, "install Readygate"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }

// The API server records the managed fields of an object that was created with fields, as every real node is.
func TestTheWriterOfAConditionIsNamed(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.Create(t, testenv.Rule("written"))
	c.Create(t, testenv.Node("written", testenv.Pool("written")))
	c.SetCondition(t, "written", testenv.Condition, corev1.ConditionFalse)
	explanation, err := source(t, c, "admin", administrators).Explanation(t.Context(), "written")
	if err != nil {
		t.Fatal(err)
	}
	if writer := explanation.Chapters[0].Requirements[0].Writer; writer != "views.test" {
		t.Errorf("the condition was written by %q, not by this test", writer)
	}
}
