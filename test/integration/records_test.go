package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/manager/ruletaints"
	"github.com/readygate/readygate/internal/testenv"
)

const (
	inventedUID   = "00000000-1111-2222-3333-555555555555"
	personsTaint  = "readiness.k8s.io/by-a-person"
	startupTaint  = "startup-taint.cluster-autoscaler.kubernetes.io/by-the-autoscaler"
	ruleListVerbs = "list nodereadinessrules"
)

// recordOf returns an ownership record for a taint.
func recordOf(taintKey string) string {
	return `{"rule":"gone","taint":"` + taintKey + `:NoSchedule","origin":"added"}`
}

func ruleTaints() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.ManagerNamespace, Name: ruletaints.ConfigMapName}}
}

// listed returns the entries of the list of rule taints.
func listed(ctx context.Context, c *testenv.Cluster) (map[string]string, error) {
	obj := ruleTaints()
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	return obj.Data, err
}

// eventuallyListed waits until the list satisfies the check.
func eventuallyListed(t *testing.T, c *testenv.Cluster, what string, check func(map[string]string) bool) {
	t.Helper()
	testenv.Eventually(t, "the list of rule taints: "+what, func(ctx context.Context) error {
		if entries, err := listed(ctx, c); err != nil || !check(entries) {
			return fmt.Errorf("%v, %v", entries, err)
		}
		return nil
	})
}

// enter writes a rule into the list of rule taints, as a manager does before it writes the rule's record to a node. No
// manager may run.
func enter(t *testing.T, c *testenv.Cluster, uid, taintKey string) {
	t.Helper()
	obj := ruleTaints()
	obj.Data = map[string]string{uid: taintKey + ":NoSchedule"}
	err := c.Client.Create(t.Context(), obj.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = c.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{%q:%q}}`, uid, taintKey+":NoSchedule")))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// forge adds an ownership record to a node as this user.
func forge(ctx context.Context, as client.Client, node, uid, taintKey string, opts ...client.PatchOption) error {
	obj := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.HoldPrefix+uid, recordOf(taintKey))
	return as.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), opts...)
}

// eventuallyReported waits for the event about a record of a rule that is not in the list, and returns its text.
func eventuallyReported(t *testing.T, c *testenv.Cluster, node *corev1.Node) (text string) {
	t.Helper()
	testenv.Eventually(t, "a report about "+node.Name, func(context.Context) error {
		for _, event := range c.Events(t, node) {
			if event.Reason == v1alpha1.EventUnlistedRecord {
				text = event.Note
				return nil
			}
		}
		return errors.New("no event")
	})
	return text
}

// forceDelete deletes a rule after removing its finalizer.
func forceDelete(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	c.Patch(t, rule, func() { rule.Finalizers = nil })
	if err := c.Client.Delete(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	gone(t, c, rule)
}

// A kubelet must not remove taints from its node. A forged record does not make the manager remove them.
func TestAForgedRecordRemovesNoTaint(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule := testenv.Rule("forged")
	c.Create(t, rule)
	c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	for name, forged := range map[string]struct{ uid, taint string }{
		"invented-rule-person":     {inventedUID, personsTaint},
		"invented-rule-autoscaler": {inventedUID, startupTaint},
		"existing-rule-person":     {string(rule.UID), personsTaint},
	} {
		t.Run(name, func(t *testing.T) {
			node := testenv.Node(name, testenv.Pool("elsewhere"), testenv.WithTaint(personsTaint), testenv.WithTaint(startupTaint))
			c.Create(t, node)
			as := kubelet(t, c, name)
			untainted := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))
			if err := as.Patch(t.Context(), node.DeepCopy(), untainted); !apierrors.IsForbidden(err) {
				t.Fatalf("a kubelet can remove taints itself: %v", err)
			}
			if err := forge(t.Context(), as, name, forged.uid, forged.taint); err != nil {
				t.Fatal(err)
			}
			text := eventuallyReported(t, c, node)
			for _, command := range []string{"kubectl annotate node " + name + " " + v1alpha1.HoldPrefix + forged.uid + "-", "kubectl taint node " + name + " " + forged.taint + ":NoSchedule-"} {
				if !strings.Contains(text, command) {
					t.Errorf("the event does not contain the command %q: %s", command, text)
				}
			}
			c.Patch(t, node, func() { node.Labels["pool"] = rule.Name })
			got := c.EventuallyNode(t, name, "held, so written by the manager after the forgery", held(rule))
			if !testenv.HasTaint(got, personsTaint) || !testenv.HasTaint(got, startupTaint) {
				t.Errorf("taints are left: %v", got.Spec.Taints)
			}
		})
	}
	t.Run("completion records of deleted rules are removed", func(t *testing.T) {
		node := testenv.Node("completed", nil, func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.CompletedPrefix + inventedUID: `{"rule-name":"gone"}`, "example.com/note": "stays"}
		})
		c.Create(t, node)
		c.EventuallyNode(t, node.Name, "cleaned up", func(n *corev1.Node) bool {
			return len(n.Annotations) == 1 && n.Annotations["example.com/note"] == "stays"
		})
	})
}

// With the policy, only the manager can add or change an ownership record on an existing node. Other writes are not
// affected.
func TestOnlyTheManagerWritesHoldRecords(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=1s")
	rule := testenv.Rule("holds")
	createCovered(t, c, rule)
	node := testenv.Node("holds", testenv.Pool("elsewhere"), testenv.WithTaint(rule.Spec.Taint.Key), testenv.WithTaint(personsTaint))
	c.Create(t, node)
	as, admin := kubelet(t, c, node.Name), c.Client
	testenv.Eventually(t, "the policy to be enforced", func(ctx context.Context) error {
		if err := forge(ctx, as, node.Name, inventedUID, personsTaint, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may add or change an ownership record") {
			return fmt.Errorf("got %v, want a rejection", err)
		}
		return nil
	})
	status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, recordKey(rule), recordOf(rule.Spec.Taint.Key)))
	for name, answer := range map[string]error{
		"a kubelet, of an existing rule and its taint": forge(t.Context(), as, node.Name, string(rule.UID), rule.Spec.Taint.Key),
		"a kubelet, through the status":                as.Status().Patch(t.Context(), node.DeepCopy(), status),
		"an agent":                                     forge(t.Context(), agent(t, c), node.Name, inventedUID, personsTaint),
		"an administrator":                             forge(t.Context(), admin, node.Name, inventedUID, personsTaint),
	} {
		if !apierrors.IsForbidden(answer) {
			t.Errorf("%s is not rejected: %v", name, answer)
		}
	}
	kubectl := c.Kubectl(t)
	kubectl.Run(t, "annotate", "node", node.Name, "example.com/note=a")
	kubectl.Run(t, "taint", "node", node.Name, "example.com/a=b:NoSchedule")
	if err := as.Status().Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/kubelet":"a"}}}`))); err != nil {
		t.Errorf("a kubelet's own annotation: %v", err)
	}

	// The policy for new nodes also adds the record and the taint in the request that labels the node.
	other := testenv.Node("labelled", testenv.Pool("elsewhere"))
	c.Create(t, other)
	kubectl.Run(t, "label", "--overwrite", "node", other.Name, "pool="+rule.Name)
	if got := holdOf(now(t, c, other.Name), rule); c.ServesMutatingPolicies(t) && got != "taint labelled" {
		t.Errorf("labelled by an administrator: %q", got)
	}
	kubectl.Run(t, "annotate", "node", other.Name, recordKey(rule)+"-")
	c.EventuallyNode(t, other.Name, "recorded again", held(rule))

	// No taint of a person was removed.
	if got := now(t, c, node.Name); !testenv.HasTaint(got, personsTaint) || !testenv.HasTaint(got, rule.Spec.Taint.Key) {
		t.Errorf("taints are left: %v", got.Spec.Taints)
	}
	wantNoRefusal(t, c, testenv.ManagerUser)
}

// The manager removes the leftovers of a rule that was force-deleted while no manager ran, with at most three LISTs for
// all nodes. Records of rules that are not in the list cause no LIST.
func TestRecordsOnManyNodesCostFewLists(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	const nodes = 60
	rule, other := testenv.Rule("many"), testenv.Rule("other")
	c.Create(t, rule)
	c.Create(t, other)
	name := func(i int) string { return fmt.Sprintf("many-%02d", i) }
	for i := range nodes {
		c.Create(t, testenv.Node(name(i), testenv.Pool(rule.Name), testenv.WithTaint(personsTaint)))
	}
	p := c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyRule(t, rule.Name, "enforced", func(r *v1alpha1.NodeReadinessRule) bool { return testenv.Enforced(r) && r.Status.Summary.Held == nodes })
	p.Kill()
	forceDelete(t, c, rule)

	before := count(t, c)
	c.StartProcess(t, testenv.ManagerUser)
	for i := range nodes {
		c.EventuallyNode(t, name(i), "cleaned up", free(rule))
	}
	silence(t, c, testenv.ManagerUser)
	if lists := count(t, c).since(before)[ruleListVerbs]; lists > 3 { // including the LIST of the cache
		t.Errorf("%d LISTs of rules for records of one rule on %d nodes", lists, nodes)
	}

	before = count(t, c)
	for i := range nodes {
		if err := forge(t.Context(), c.Client, name(i), inventedUID, personsTaint); err != nil {
			t.Fatal(err)
		}
	}
	for i := range nodes {
		if node := now(t, c, name(i)); !testenv.HasTaint(node, personsTaint) {
			t.Errorf("taints of %s: %v", node.Name, node.Spec.Taints)
		}
		eventuallyReported(t, c, now(t, c, name(i)))
	}
	if lists := count(t, c).since(before)[ruleListVerbs]; lists > 0 {
		t.Errorf("%d LISTs of rules for records of unlisted rules", lists)
	}
	for i := range nodes {
		node := now(t, c, name(i))
		c.Patch(t, node, func() { node.Annotations[v1alpha1.CompletedPrefix+inventedUID] = `{"rule-name":"gone"}` })
	}
	for i := range nodes {
		c.EventuallyNode(t, name(i), "cleaned up", func(n *corev1.Node) bool { return n.Annotations[v1alpha1.CompletedPrefix+inventedUID] == "" })
	}
	if lists := count(t, c).since(before)[ruleListVerbs]; lists > 3 {
		t.Errorf("%d LISTs of rules for completions of one rule on %d nodes", lists, nodes)
	}
}

// The manager adds a rule to the list before it writes a node or the policy, and removes it last. It restores the list
// after changes by people.
func TestTheListOfRuleTaints(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	malformed := ruleTaints()
	malformed.Data = map[string]string{"note": "not a taint", "other": "example.com/foreign:NoSchedule"}
	if err := c.Client.Create(t.Context(), malformed); err != nil {
		t.Fatal(err)
	}
	rule := testenv.Rule("listed")
	c.Create(t, rule)
	c.Create(t, testenv.Node("listed", testenv.Pool(rule.Name)))
	stop := runWithShortList(t, c)
	c.EventuallyNode(t, "listed", "held", held(rule))
	c.EventuallyRule(t, rule.Name, "covered", covered)
	entry := func(entries map[string]string) bool {
		return entries[string(rule.UID)] == rule.Spec.Taint.Key+":NoSchedule"
	}
	eventuallyListed(t, c, "has the rule, and keeps invalid entries", func(entries map[string]string) bool {
		return entry(entries) && entries["note"] == "not a taint" && len(entries) == 3
	})
	requests := c.Requests(t, testenv.ManagerUser)
	first := func(resource string) time.Time {
		i := slices.IndexFunc(requests, func(r testenv.Request) bool { return r.Resource == resource && r.IsWrite() && r.Code < 300 })
		if i < 0 {
			t.Fatalf("no write of %s", resource)
		}
		return requests[i].At
	}
	if at := first("configmaps"); first("nodes").Before(at) || first("mutatingadmissionpolicies").Before(at) {
		t.Errorf("the list was written at %v, a node at %v, the policy at %v", at, first("nodes"), first("mutatingadmissionpolicies"))
	}

	// After a person deletes the list, the next write restores all entries.
	if err := c.Client.Delete(t.Context(), ruleTaints()); err != nil {
		t.Fatal(err)
	}
	next := testenv.Rule("next")
	createCovered(t, c, next)
	eventuallyListed(t, c, "has both rules", func(entries map[string]string) bool { return entry(entries) && entries[string(next.UID)] != "" })
	writes := count(t, c)["patch configmaps"] + count(t, c)["create configmaps"]
	if writes > 3 { // one per rule, and one PATCH that found no ConfigMap
		t.Errorf("%d writes of the list for two rules", writes)
	}

	// If the list is deleted while no manager runs, the manager restores it before it cleans up leftovers.
	stop()
	if err := c.Client.Delete(t.Context(), ruleTaints()); err != nil {
		t.Fatal(err)
	}
	stop = runWithShortList(t, c)
	eventuallyListed(t, c, "has both rules", func(entries map[string]string) bool { return entry(entries) && entries[string(next.UID)] != "" })
	stop()
	forceDelete(t, c, rule)
	runWithShortList(t, c)
	c.EventuallyNode(t, "listed", "cleaned up", free(rule))
	if err := c.Client.Delete(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	eventuallyListed(t, c, "is empty", func(entries map[string]string) bool { return len(entries) == 0 })
}

// runWithShortList runs a manager that keeps entries of deleted rules for 12 s. The returned function stops it.
func runWithShortList(t *testing.T, c *testenv.Cluster) (stop func()) {
	t.Helper()
	_, end, err := c.RunManager(func(o *manager.Options) { o.SettleTime, o.ListRest = time.Second, 12*time.Second })
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if err := end(); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Without the right to read and write the list, the manager holds nodes and cleans up no leftovers, and its rules report
// the missing right. Once it has the right, it removes the leftovers.
func TestAListThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.ManagerNamespace, Name: admission.ManagerAccount}}
	var complete []rbacv1.PolicyRule
	c.Patch(t, role, func() {
		complete = slices.Clone(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "configmaps") })
	})
	rule := testenv.Rule("unlisted")
	c.Create(t, rule)
	c.Create(t, testenv.Node("held", testenv.Pool(rule.Name)))
	c.Create(t, testenv.Node("forged", nil, testenv.WithTaint(personsTaint), func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.HoldPrefix + inventedUID: recordOf(personsTaint)}
	}))
	forceDeleted := testenv.Rule("force-deleted")
	forceDeleted.UID = "00000000-1111-2222-3333-666666666666"
	enter(t, c, string(forceDeleted.UID), forceDeleted.Spec.Taint.Key)
	c.Create(t, testenv.Node("leftover", nil, testenv.WithTaint(forceDeleted.Spec.Taint.Key), func(n *corev1.Node) {
		n.Annotations = map[string]string{v1alpha1.HoldPrefix + string(forceDeleted.UID): recordOf(forceDeleted.Spec.Taint.Key)}
	}))
	c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyNode(t, "held", "held", held(rule))
	c.EventuallyRule(t, rule.Name, "missing list reported", func(r *v1alpha1.NodeReadinessRule) bool {
		condition := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionEnforced)
		return condition != nil && condition.Reason == v1alpha1.ReasonWriteRefused && strings.Contains(condition.Message, "ConfigMap "+testenv.ManagerNamespace+"/"+ruletaints.ConfigMapName)
	})
	if node := now(t, c, "forged"); !testenv.HasTaint(node, personsTaint) || len(c.Events(t, node)) > 0 {
		t.Errorf("cleaned up or reported without the list: %v, %v", node.Spec.Taints, c.Events(t, node))
	}
	c.Patch(t, role, func() { role.Rules = complete })
	c.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	eventuallyListed(t, c, "has the rule", func(entries map[string]string) bool { return entries[string(rule.UID)] != "" })
	c.EventuallyNode(t, "leftover", "cleaned up", free(forceDeleted))
}
