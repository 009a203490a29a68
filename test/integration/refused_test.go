package integration_test

import (
	"context"
	"errors"
	"math/bits"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// refuseWrites makes the API server reject all node writes of the manager in the pool, until the returned function is
// called.
func refuseWrites(t *testing.T, c *testenv.Cluster, id string) func() {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "manager", Expression: `request.userInfo.username == "` + testenv.ManagerUser + `"`},
				{Name: "pool", Expression: `has(oldObject.metadata.labels) && "pool" in oldObject.metadata.labels && oldObject.metadata.labels["pool"] in ["` + id + `", "` + id + `-probe"]`},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "the windmills are closed today"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: id, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	probe := testenv.Node(id+"-probe", testenv.Pool(id+"-probe"))
	c.Create(t, probe)
	manager := c.As(t, testenv.ManagerUser)
	refused := func(ctx context.Context) bool {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+v1alpha1.HoldPrefix+`probe":"x"}}}`))
		err := manager.Patch(ctx, probe.DeepCopy(), patch, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "windmills")
	}
	c.Create(t, policy)
	c.Create(t, binding)
	testenv.Eventually(t, "the policy to be enforced", func(ctx context.Context) error {
		if !refused(ctx) {
			return errors.New("not yet")
		}
		return nil
	})
	return func() {
		t.Helper()
		for _, obj := range []client.Object{binding, policy} {
			if err := c.Client.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		testenv.Eventually(t, "the end of the policy", func(ctx context.Context) error {
			if refused(ctx) {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

// If the API server rejects a write, the rule and an event of the node report it, the node is unchanged, and the manager
// retries with backoff. Once writes are allowed, the write succeeds.
func TestARefusedWriteIsShownAndNothingIsLost(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	allow := refuseWrites(t, c, id)
	rule := testenv.Rule(id, testenv.BootstrapOnly)
	node := testenv.Node(id, testenv.Pool(id), testenv.WithTaint(rule.Spec.Taint.Key))
	c.CreateNode(t, node, corev1.ConditionTrue)
	created := time.Now()
	c.Create(t, rule)

	got := c.EventuallyRule(t, id, "rejection reported", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonWriteRefused))
	if got.Status.Summary.Failed != 1 || len(got.Status.FailedNodes) != 1 || got.Status.FailedNodes[0].NodeName != id {
		t.Errorf("failed nodes: %+v", got.Status)
	}
	if message := got.Status.FailedNodes[0].Message; !strings.Contains(message, "windmills") {
		t.Errorf("the message does not contain the cause: %s", message)
	}
	event := eventOf(t, c, node, v1alpha1.EventWriteRefused)
	if event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, "windmills") || !strings.Contains(event.Note, id) {
		t.Errorf("event: %s %s", event.Type, event.Note)
	}
	c.EventuallyNode(t, id, "untouched", func(n *corev1.Node) bool {
		return testenv.HasTaint(n, rule.Spec.Taint.Key) && n.Annotations[completedKey(rule)] == ""
	})
	// The manager retries after 1, 2, 4, 8 seconds and so on, and once directly from fresh state.
	if tries, seconds := patchesOf(t, c, id), uint(time.Since(created).Seconds()); tries > 2+bits.Len(seconds+1) {
		t.Errorf("%d PATCHes in %d seconds, want backoff", tries, seconds)
	}

	// Writes are allowed again. The retry succeeds without a change of the node.
	allow()
	c.EventuallyNode(t, id, "released and completed", func(n *corev1.Node) bool {
		return free(rule)(n) && n.Annotations[completedKey(rule)] != ""
	})
	c.EventuallyRule(t, id, "enforced", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Failed == 0 && len(r.Status.FailedNodes) == 0
	})
}

// patchesOf counts the manager's PATCHes of a node, including rejected ones.
func patchesOf(t *testing.T, c *testenv.Cluster, node string) int {
	t.Helper()
	count := 0
	for _, request := range c.Requests(t, testenv.ManagerUser) {
		if request.Verb == "patch" && request.Resource == "nodes" && request.Name == node {
			count++
		}
	}
	return count
}
