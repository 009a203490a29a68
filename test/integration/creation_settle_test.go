package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// settleTime is the default of --policy-settle-time.
const settleTime = 5 * time.Second

const (
	isCovered  = "True " + v1alpha1.ReasonPolicyActive
	isSettling = "False " + v1alpha1.ReasonProgressing
)

// diary has all statuses and reasons of the condition TaintedAtCreation of a rule since it was opened.
type diary struct {
	rule string

	mu   sync.Mutex
	said []string
}

// keepDiary records each write of the rule's status until the test ends.
func keepDiary(t *testing.T, c *testenv.Cluster, rule string) *diary {
	t.Helper()
	d := &diary{rule: rule}
	events, err := c.Client.Watch(t.Context(), &v1alpha1.NodeReadinessRuleList{},
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, rule)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if rule, ok := event.Object.(*v1alpha1.NodeReadinessRule); ok {
				d.write(rule)
			}
		}
	}()
	return d
}

func (d *diary) write(rule *v1alpha1.NodeReadinessRule) {
	condition := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionTaintedAtCreation)
	if condition == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = slices.Compact(append(d.said, fmt.Sprintf("%s %s", condition.Status, condition.Reason)))
}

// want waits until the diary ends with these entries, and checks that it has no others.
func (d *diary) want(t *testing.T, entries ...string) {
	t.Helper()
	testenv.Eventually(t, d.rule+": "+entries[len(entries)-1], func(context.Context) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.said) < len(entries) || d.said[len(d.said)-1] != entries[len(entries)-1] {
			return fmt.Errorf("entries %v", d.said)
		}
		return nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.said, entries) {
		t.Errorf("%s: entries %v, want %v", d.rule, d.said, entries)
	}
}

// policyWrites returns the times at which the manager began to write the policy.
func policyWrites(t *testing.T, c *testenv.Cluster) []time.Time {
	t.Helper()
	var times []time.Time
	for _, r := range c.Requests(t, testenv.ManagerUser) {
		if r.Verb == "update" && r.Resource == "mutatingadmissionpolicies" && r.Code == 200 {
			times = append(times, r.At)
		}
	}
	return times
}

// wantSettled checks that the rule is covered no earlier than the settle time after the last write of the policy. Times
// of conditions have whole seconds.
func wantSettled(t *testing.T, c *testenv.Cluster, rule string) {
	t.Helper()
	writes := policyWrites(t, c)
	since := coveredSince(ruleOf(t, c, rule))
	if settled := since.Add(time.Second).Sub(writes[len(writes)-1]); settled < settleTime {
		t.Errorf("%s is covered %v after the policy was written", rule, settled-time.Second)
	}
}

// Two rules are created and deleted under two successive managers.
func TestTaintedAtCreationAndDeletionWaitForTheSettleTime(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	manager := c.StartProcess(t, testenv.ManagerUser)
	a, b := testenv.Rule("settle-a"), testenv.Rule("settle-b")
	diaryOfA, diaryOfB := keepDiary(t, c, a.Name), keepDiary(t, c, b.Name)
	said := []string{isSettling, isCovered}

	createCovered(t, c, a)
	wantSettled(t, c, a.Name)
	diaryOfA.want(t, said...)

	// Another rule does not restart its settle time.
	createCovered(t, c, b)
	wantSettled(t, c, b.Name)
	diaryOfB.want(t, said...)
	diaryOfA.want(t, said...)

	// A new manager, which does not write the policy, does not restart it either.
	written := len(policyWrites(t, c))
	manager.Kill()
	c.Create(t, testenv.Node("settle", testenv.Pool(a.Name)))
	c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyRule(t, a.Name, "reconciled by the new manager", func(r *v1alpha1.NodeReadinessRule) bool { return r.Status.Summary.Held == 1 })
	diaryOfA.want(t, said...)
	diaryOfB.want(t, said...)
	if n := len(policyWrites(t, c)); n > written {
		t.Errorf("the new manager wrote the policy %d times", n-written)
	}

	for i, edit := range policyEdits(a) {
		t.Run("an edit of "+edit.of+" is reverted", func(t *testing.T) {
			wantPutBack(t, c, edit.change)
			said = append(said, isSettling, isCovered)
			diaryOfA.want(t, said...)
			wantSettled(t, c, a.Name)
			wantCreated(t, c, a, fmt.Sprintf("settle-%d", i))
		})
	}
	testADeletedRuleSettles(t, c, a)
}

type policyEdit struct {
	of     string
	change func(*admissionv1.MutatingAdmissionPolicySpec)
}

// policyEdits returns edits of all parts of the policy that change its effect on nodes of the rule.
func policyEdits(rule *v1alpha1.NodeReadinessRule) []policyEdit {
	return []policyEdit{
		{"the rule", func(s *admissionv1.MutatingAdmissionPolicySpec) {
			for i := range s.Variables {
				if s.Variables[i].Name == admission.VariableOf(rule.UID) {
					s.Variables[i].Expression = "false && " + s.Variables[i].Expression
				}
			}
		}},
		{"the mutation", func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Mutations[0].JSONPatch.Expression = "(" + s.Mutations[0].JSONPatch.Expression + ").filter(p, false)"
		}},
		{"the match conditions", func(s *admissionv1.MutatingAdmissionPolicySpec) { s.MatchConditions[0].Expression = "false" }},
		{"the failure policy", func(s *admissionv1.MutatingAdmissionPolicySpec) { *s.FailurePolicy = admissionv1.Fail }},
	}
}

// wantPutBack edits the policy and waits until the edit is reverted.
func wantPutBack(t *testing.T, c *testenv.Cluster, change func(*admissionv1.MutatingAdmissionPolicySpec)) {
	t.Helper()
	obj := admission.TaintNewNodesPolicy()
	key := client.ObjectKeyFromObject(obj)
	if err := c.Client.Get(t.Context(), key, obj); err != nil {
		t.Fatal(err)
	}
	before := admission.ReadTaintNewNodes(&obj.Spec)
	change(&obj.Spec)
	if admission.ReadTaintNewNodes(&obj.Spec).Equal(before) {
		t.Fatal("nothing is edited")
	}
	if err := c.Client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the edit to be reverted", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, key, obj); err != nil {
			return err
		}
		if !admission.ReadTaintNewNodes(&obj.Spec).Equal(before) {
			return fmt.Errorf("the spec is %+v", obj.Spec)
		}
		return nil
	})
}

// Nodes join continuously, and an API server with the old policy adds the taint. The rule stays for as long, and when
// it is removed, all nodes are clean.
func testADeletedRuleSettles(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	taintNewNodes := joinUntil(t, c.Client, rule, "settle-deleted", func() {
		if err := c.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		gone(t, c, rule)
	})
	writes := policyWrites(t, c)
	taken := writes[len(writes)-1]
	var dropped time.Time
	for _, r := range c.Requests(t, testenv.ManagerUser) {
		if r.Verb == "patch" && r.Resource == "nodereadinessrules" && r.Subresource == "" && r.Name == rule.Name {
			dropped = r.At
		}
	}
	if waited := dropped.Sub(taken); waited < settleTime {
		t.Errorf("the finalizer was removed %v after the rule was removed from the policy", waited)
	}
	if taintNewNodes.held == 0 || taintNewNodes.free == 0 {
		t.Errorf("%d nodes were created with the taint and %d without: want both", taintNewNodes.held, taintNewNodes.free)
	}
	wantNothingLeft(t, c, rule)
}

// taintNewNodes counts nodes that were created with and without the taint.
type taintNewNodes struct{ held, free int }

// joinUntil creates nodes that the rule selects until the other function returns.
func joinUntil(t *testing.T, as client.Client, rule *v1alpha1.NodeReadinessRule, prefix string, done func()) taintNewNodes {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var joins sync.WaitGroup
	defer joins.Wait()
	defer stop()
	var b taintNewNodes
	joins.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			node := testenv.Node(fmt.Sprintf("%s-%04d", prefix, i), testenv.Pool(rule.Name))
			if err := as.Create(t.Context(), node); err != nil {
				t.Errorf("creating %s: %v", node.Name, err)
				return
			}
			if testenv.HasTaint(node, rule.Spec.Taint.Key) {
				b.held++
			} else {
				b.free++
			}
			pause(ctx, 20*time.Millisecond)
		}
	})
	done()
	stop()
	joins.Wait()
	return b
}

// wantNothingLeft waits until no node has the taint or a record of the rule.
func wantNothingLeft(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	testenv.Eventually(t, "nodes without a trace of "+rule.Name, func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := c.Client.List(ctx, &nodes); err != nil {
			return err
		}
		for i := range nodes.Items {
			if node := &nodes.Items[i]; !free(rule)(node) {
				return fmt.Errorf("%s: %v %v", node.Name, node.Spec.Taints, node.Annotations)
			}
		}
		return nil
	})
}

// An API server with the old policy adds the taint and the record of a deleted rule.
func TestARecordOfADeletedRuleIsRemoved(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	createCovered(t, c, rule)
	ghost := testenv.Rule(id + "-gone")
	createCovered(t, c, ghost)
	if err := c.Client.Delete(t.Context(), ghost); err != nil {
		t.Fatal(err)
	}
	gone(t, c, ghost)
	node := testenv.Node(id, testenv.Pool(id), testenv.WithTaint(ghost.Spec.Taint.Key), func(n *corev1.Node) {
		n.Annotations = map[string]string{recordKey(ghost): fmt.Sprintf(`{"rule":%q,"taint":"%s:NoSchedule","origin":"created"}`, ghost.Name, ghost.Spec.Taint.Key)}
	})
	c.Create(t, node)
	if got := holdOf(node, rule) + ", " + holdOf(node, ghost); got != "taint created, taint created" {
		t.Fatalf("created with %q", got)
	}
	got := c.EventuallyNode(t, id, "swept", free(ghost))
	if holdOf(got, rule) != "taint created" {
		t.Errorf("the taint or the record of the existing rule is gone: %v %v", got.Spec.Taints, got.Annotations)
	}
}

// The manager writes through one of two API servers. The conditions of its rules are true for nodes that join through the
// other one.
func TestTaintedAtCreationIsTrueForEveryAPIServer(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.NeedMutatingPolicies(t)
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := replica(t, c)
	c.StartProcess(t, testenv.ManagerUser)
	for round := range 3 {
		rules := make([]*v1alpha1.NodeReadinessRule, 10)
		for i := range rules { // concurrently: the first status write of some rules is at the time of the policy write
			rules[i] = testenv.Rule(fmt.Sprintf("replica-%d-%d", round, i))
			c.Create(t, rules[i])
		}
		var bursts sync.WaitGroup
		for _, rule := range rules {
			bursts.Go(func() { wantBurstHeld(t, c, other, rule) })
		}
		bursts.Wait()
		wantGoneEverywhere(t, c, other, rules[0])
	}
}

// wantBurstHeld creates nodes through the other API server as soon as TaintedAtCreation is True, and checks that all are
// created with the taint.
func wantBurstHeld(t *testing.T, c *testenv.Cluster, other client.Client, rule *v1alpha1.NodeReadinessRule) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := rule.DeepCopy(); !covered(got); pause(ctx, 10*time.Millisecond) {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(rule), got); err != nil {
			t.Errorf("waiting for %s: %v", rule.Name, err)
			return
		}
	}
	for i := range 10 {
		node := testenv.Node(fmt.Sprintf("%s-%02d", rule.Name, i), testenv.Pool(rule.Name))
		if err := other.Create(ctx, node); err != nil {
			t.Errorf("creating %s: %v", node.Name, err)
		} else if got := holdOf(node, rule); got != "taint created" {
			t.Errorf("%s is covered, and %s is created with %q", rule.Name, node.Name, got)
		}
	}
}

// wantGoneEverywhere deletes the rule while nodes join through the other API server. When the rule is gone, no API server
// adds its taint anymore.
func wantGoneEverywhere(t *testing.T, c *testenv.Cluster, other client.Client, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	joined := joinUntil(t, other, rule, rule.Name+"-deleted", func() {
		if err := c.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		gone(t, c, rule)
	})
	for name, as := range map[string]client.Client{"first": c.Client, "other": other} {
		node := testenv.Node(rule.Name+"-after-"+name, testenv.Pool(rule.Name))
		if err := as.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if !free(rule)(node) {
			t.Errorf("the rule is gone, but the %s API server adds %v", name, node.Spec.Taints)
		}
	}
	t.Logf("while %s was deleted, the other API server bore %d nodes held and %d free", rule.Name, joined.held, joined.free)
	wantNothingLeft(t, c, rule)
}
