package integration_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/testenv"
)

// A manager runs while the API server is replaced by that of the next minor version, on the same etcd. No node is released
// early, and the manager uses the policies in the version that the new API server serves. Not in parallel: environment
// variables select the binaries.
func TestTheAPIServerIsUpgraded(t *testing.T) {
	upgrade := testenv.NextAPIServer(t)
	c := testenv.StartOwnCluster(t)
	install(t, c)
	manager := c.StartProcess(t, testenv.ManagerUser)
	rule, once := testenv.Rule("upgrade"), testenv.Rule("upgrade-once", testenv.BootstrapOnly)
	createCovered(t, c, rule)
	createCovered(t, c, once)
	node, done := testenv.Node("upgrade", testenv.Pool(rule.Name)), testenv.Node("done", testenv.Pool(once.Name))
	c.CreateNode(t, node, corev1.ConditionFalse)
	c.CreateNode(t, done, corev1.ConditionTrue)
	c.EventuallyNode(t, node.Name, "held", held(rule))
	c.EventuallyNode(t, done.Name, "completed", func(n *corev1.Node) bool { return n.Annotations[completedKey(once)] != "" && free(once)(n) })
	c.SetCondition(t, done.Name, testenv.Condition, corev1.ConditionFalse) // must not hold the node again
	served := c.ServesMutatingPolicies(t)

	upgrade(c, "")
	c.EventuallyNode(t, node.Name, "still held", held(rule))
	if c.ServesMutatingPolicies(t) {
		if !served {
			for _, obj := range admission.Installed() { // as helm upgrade does
				if mutatingpolicy.Is(obj) {
					c.Create(t, obj.(client.Object))
				}
			}
		}
		createCovered(t, c, testenv.Rule("upgrade-later"))
		c.EventuallyRule(t, rule.Name, "covered", covered)
		wantCreated(t, c, rule, "upgrade-created")
		binding := admission.TaintNewNodesBinding()
		uninstall(t, c, binding)
		wantReason(t, c, rule.Name, v1alpha1.ReasonBindingMissing)
		c.Create(t, admission.TaintNewNodesBinding())
		c.EventuallyRule(t, rule.Name, "covered again", covered)
	} else {
		c.Create(t, testenv.Node("upgrade-created", testenv.Pool(rule.Name)))
		c.EventuallyNode(t, "upgrade-created", "held", held(rule))
		wantReason(t, c, rule.Name, v1alpha1.ReasonAPIMissing)
	}
	if slices.ContainsFunc(c.Events(t, node), func(e eventsv1.Event) bool { return e.Reason == v1alpha1.EventTaintRemoved }) {
		t.Error("the node was released during the upgrade")
	}
	c.EventuallyNode(t, done.Name, "not held again", free(once))
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node.Name, "released", free(rule))
	if code := manager.Terminate(); code != 0 {
		t.Errorf("the manager ended with %d", code)
	}
}
