package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// start returns a cluster with three nodes that the flannel example held and released.
func start(t *testing.T) *lab.Lab {
	t.Helper()
	l := lab.Start(t)
	install(t, l)
	l.JoinThree(t, worker)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", example("flannel-readiness"))
	covered(t, l, flannelRule)
	l.InstallFlannel(t)
	l.EventuallyNodes(t, "ready", is(string(corev1.NodeReady), corev1.ConditionTrue), "n1", "n2", "n3")
	l.EventuallyNodes(t, "completed", completed(t, l), "n1", "n2", "n3")
	l.Step(t, "three nodes are in use")
	return l
}

// completed reports whether the rule has completed on the node: released once, and never held again.
func completed(t *testing.T, l *lab.Lab) func(*corev1.Node) bool {
	t.Helper()
	var rule v1alpha1.NodeReadinessRule
	l.Get(t, &rule, "", flannelRule)
	return func(node *corev1.Node) bool {
		_, done := node.Annotations[v1alpha1.CompletedPrefix+string(rule.UID)]
		return done && !held(flannelTaint)(node)
	}
}

// Scenario 4: managers are killed, then the leader's machine loses power. Another manager takes over;
// nodes that join meanwhile are tainted at creation and released; completed nodes stay completed.
func TestNodesAreHeldAndReleasedAcrossManagerFailures(t *testing.T) {
	l := start(t)
	history := l.Watch(t)

	killManagers(t, l)
	joinsHeldAndIsReleased(t, l, history, "n4")
	l.Step(t, "n4 joined while the managers were dead")

	before, node := leader(t, l)
	l.Node(node).PowerOff(t)
	l.Step(t, node+", the leader's machine, lost power")
	joinsHeldAndIsReleased(t, l, history, "n5")
	after, _ := leader(t, l)
	if after == before {
		t.Errorf("%s still leads, from a machine without power", after)
	}
	l.Step(t, "another manager leads; n5 joined meanwhile")
	l.Kubectl.Run(t, "rollout", "status", "deployment/readygate-manager", "-n", namespace, "--timeout=3m")
	l.Step(t, "the manager on the lost machine was replaced")

	for _, name := range []string{"n1", "n2", "n3"} {
		history.Always(t, name, "in use", completed(t, l))
	}
}

// killManagers ends every manager like a crash.
func killManagers(t *testing.T, l *lab.Lab) {
	t.Helper()
	var pods corev1.PodList
	if err := l.Client.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if err := l.Client.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(pods.Items) != 2 {
		t.Errorf("%d managers, want the 2 of the chart", len(pods.Items))
	}
}

// leader returns the pod of the manager that holds the lease, and its node.
func leader(t *testing.T, l *lab.Lab) (pod, node string) {
	t.Helper()
	testenv.Eventually(t, "a leader", func(ctx context.Context) error {
		var lease coordinationv1.Lease
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.LeaseName}, &lease); err != nil {
			return err
		}
		// With hostNetwork the identity begins with the node's name.
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		name, _, found := strings.Cut(holder, "_")
		if !found {
			return fmt.Errorf("no manager leads: holder %q", holder)
		}
		pod, node = holder, name
		return nil
	})
	return pod, node
}

// joinsHeldAndIsReleased joins a node. It is tainted at creation, also without a leader, and released later.
func joinsHeldAndIsReleased(t *testing.T, l *lab.Lab, history *lab.History, name string) {
	t.Helper()
	l.Join(t, name, worker)
	taintedAtCreation(t, history, name)
	l.EventuallyNode(t, name, "released", completed(t, l))
}

// taintedAtCreation waits for the node: its first state has the taint.
func taintedAtCreation(t *testing.T, history *lab.History, name string) {
	t.Helper()
	testenv.Eventually(t, name+" in the watch", seen(history, name))
	if first := history.Of(name)[0]; !held(flannelTaint)(first.Node) {
		t.Errorf("%s was not tainted at creation: %s", name, lab.Describe(first.Node))
	}
}
