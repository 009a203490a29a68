package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// ruleFrom returns the valid rule with this name, edited. {id} in the edits is the pool.
func ruleFrom(t *testing.T, id, name string, changes edits) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(changes.Rule(t, id), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetName(name)
	return obj
}

// try creates the rule as a dry run.
func try(ctx context.Context, c *testenv.Cluster, rule client.Object) error {
	return c.Client.Create(ctx, rule.DeepCopyObject().(client.Object), client.DryRunAll)
}

// conflictsWith reports whether the error is a rejection because of this rule.
func conflictsWith(answer error, rule string) bool {
	return answer != nil && strings.Contains(answer.Error(), "'"+admission.ConflictsName+"'") && strings.Contains(answer.Error(), `rule "`+rule+`" manages the taint`)
}

// twinOf returns a copy of the rule with another name. The two always conflict.
func twinOf(rule *unstructured.Unstructured) *unstructured.Unstructured {
	twin := &unstructured.Unstructured{Object: map[string]any{"spec": rule.DeepCopy().Object["spec"]}}
	twin.SetGroupVersionKind(rule.GroupVersionKind())
	twin.SetName(rule.GetName() + "-twin")
	return twin
}

// looked waits until the API server compares new rules with this one. It has then also received all earlier writes.
func looked(t *testing.T, c *testenv.Cluster, rule *unstructured.Unstructured) {
	t.Helper()
	testenv.Eventually(t, "a rejection because of "+rule.GetName(), func(ctx context.Context) error {
		if answer := try(ctx, c, twinOf(rule)); !conflictsWith(answer, rule.GetName()) {
			return fmt.Errorf("got %v", answer)
		}
		return nil
	})
}

// zones selects nodes of the pool in these zones.
func zones(values string) edits {
	return edits{"spec.nodeSelector.matchExpressions": "[{key: zone, operator: In, values: [" + values + "]}]"}
}

// The policy reads the status that the manager writes: a rule that has lost a conflict rejects no other rule.
func TestARuleThatIsNotAcceptedRejectsNoOther(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	winner := ruleFrom(t, id, id+"-winner", zones("a"))
	c.Create(t, winner)
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, winner) })
	c.Create(t, ruleFrom(t, id, id, zones("a, b").And(edits{"spec.dryRun": "true"})))
	flip(t, c, id)
	c.EventuallyRule(t, id, "in conflict", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict))
	last := ruleFrom(t, id+"-last", id+"-last", nil)
	c.Create(t, last)
	looked(t, c, last)
	created := ruleFrom(t, id, id+"-new", zones("b"))
	c.Create(t, created)
	c.EventuallyRule(t, created.GetName(), "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
}

// flip sets spec.dryRun of a rule to false.
func flip(t *testing.T, c *testenv.Cluster, name string) {
	t.Helper()
	rule := &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Patch(t, rule, func() { rule.Spec.DryRun = false })
}

// The exact output of kubectl for every way to create a rule.
func TestKubectlShowsWhyARuleIsRefused(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	existing := ruleFrom(t, id, id, nil)
	c.Create(t, existing)
	looked(t, c, existing)
	write(t, k, "rule.yaml", twinOf(existing))
	reason := fmt.Sprintf(`ValidatingAdmissionPolicy 'readygate-conflicts' with binding 'readygate-conflicts' denied request: `+
		`rule "%s" manages the taint readiness.k8s.io/%s:NoSchedule on nodes that this rule can select too: `+
		`use another taint or a nodeSelector that excludes its nodes, or delete that rule first`, id, id)
	for _, args := range []string{
		"apply -f rule.yaml",
		"create -f rule.yaml",
		"apply --dry-run=server -f rule.yaml",
		"create --dry-run=server -f rule.yaml",
		"apply --server-side -f rule.yaml",
		"apply --server-side --dry-run=server -f rule.yaml",
		"replace --force --cascade=background -f rule.yaml",
	} {
		_, err := k.Try(t.Context(), strings.Fields(args)...)
		if err == nil {
			t.Fatalf("kubectl %s: not rejected", args)
		}
		_, printed, _ := strings.Cut(err.Error(), "\n")
		if !strings.HasPrefix(printed, "Error from server (Forbidden): ") || !strings.HasSuffix(strings.TrimSpace(printed), reason) {
			t.Errorf("kubectl %s prints\n%s\nwant\n%s", args, printed, reason)
		}
	}
	wantNoRule(t, c, id+"-twin")
}

// write puts the object into a file in the home.
func write(t *testing.T, k *testenv.Kubectl, file string, obj *unstructured.Unstructured) {
	t.Helper()
	data, err := json.Marshal(obj) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.Home, file), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The policy does not reject two dry-run rules that are changed to enforce. The manager then rejects the younger one, and
// both rules can still be changed and deleted.
func TestNoChangeOfARuleInConflictIsRefused(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	k := c.Kubectl(t)
	winner, loser := id+"-winner", id+"-loser"
	preview := edits{"spec.dryRun": "true"}
	for _, name := range []string{winner, loser} {
		c.Create(t, ruleFrom(t, id, name, preview))
		testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, ruleOf(t, c, name)) })
	}
	conflict := func() {
		t.Helper()
		message := fmt.Sprintf("rule %q is older and manages the taint readiness.k8s.io/%s:NoSchedule on nodes that this rule can select too", winner, id)
		c.EventuallyRule(t, winner, "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
		got := c.EventuallyRule(t, loser, "in conflict", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict))
		if said := got.Status.Conditions[0].Message; !strings.HasPrefix(said, message) {
			t.Errorf("the message is %q", said)
		}
	}
	flip(t, c, winner)
	flip(t, c, loser)
	conflict()
	enforced := ruleFrom(t, id, winner, edits{"spec.dryRun": "false"})
	looked(t, c, enforced)

	for _, name := range []string{winner, loser} {
		rule := &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Patch(t, rule, func() { rule.Labels = map[string]string{"team": "a"} })
		c.Patch(t, rule, func() { rule.Annotations = map[string]string{"example.com/a": "1"} })
		c.Patch(t, rule, func() { rule.Finalizers = append(rule.Finalizers, "example.com/keep") })
		c.Patch(t, rule, func() { rule.Finalizers = []string{v1alpha1.Finalizer} })
		c.Patch(t, rule, func() { rule.Spec.DryRun = true })
		c.Patch(t, rule, func() { rule.Spec.DryRun = false })
		setForeignCondition(t, c, name)
		write(t, k, "rule.yaml", ruleFrom(t, id, name, edits{"spec.dryRun": "false"}))
		k.Run(t, "apply", "-f", "rule.yaml")
		if out := k.Run(t, "apply", "-f", "rule.yaml"); !strings.HasSuffix(out, "unchanged\n") {
			t.Errorf("kubectl prints %q the second time", out)
		}
		k.Run(t, "apply", "--server-side", "--force-conflicts", "-f", "rule.yaml")
		kubectlReplace(t, k, "rule.yaml")
	}
	conflict()
	for _, name := range []string{loser, winner} {
		k.Run(t, "delete", "nrr", name, "--wait=false")
		gone(t, c, &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// setForeignCondition writes the status as another client.
func setForeignCondition(t *testing.T, c *testenv.Cluster, name string) {
	t.Helper()
	merge := client.RawPatch(types.MergePatchType, []byte(`{"status":{"appliedNodes":["none"]}}`))
	if err := c.Client.Status().Patch(t.Context(), &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}}, merge); err != nil {
		t.Fatalf("writing the status of %s: %v", name, err)
	}
}

// While the policy is missing for any reason, rules can be created, and the manager handles conflicts. A restored policy
// compares with the rules that exist then.
func TestNoRuleIsBlockedForever(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=1s")
	settled := func(t *testing.T, id string) {
		t.Helper()
		first := ruleFrom(t, id, id, nil)
		c.Create(t, first)
		testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, first) })
		testenv.Eventually(t, "creation of a conflicting rule", func(ctx context.Context) error { return c.Client.Create(ctx, twinOf(first)) })
		c.EventuallyRule(t, id+"-twin", "in conflict", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict))
	}
	settled(t, "not-installed")
	for _, way := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"installed", func(t *testing.T) { install(t, c) }},
		{"API-server-restarted", func(t *testing.T) {
			if err := errors.Join(c.KillAPIServer(), c.StartAPIServer(t.Context())); err != nil {
				t.Fatal(err)
			}
		}},
		{"bound-again", func(t *testing.T) {
			uninstall(t, c, admission.ConflictsBinding())
			settled(t, "unbound")
			if err := c.Client.Create(t.Context(), admission.ConflictsBinding()); err != nil {
				t.Fatal(err)
			}
		}},
		{"installed-again", func(t *testing.T) {
			uninstall(t, c, admission.Installed()...)
			settled(t, "uninstalled")
			install(t, c)
		}},
		{"CRD-installed-again", func(t *testing.T) { renewCRD(t, c) }},
	} {
		t.Run(way.name, func(t *testing.T) {
			way.do(t)
			start := time.Now()
			id := strings.ToLower(way.name)
			rule := ruleFrom(t, id, id, nil)
			c.Create(t, rule) // never rejected, also not now
			looked(t, c, rule)
			t.Logf("rules are compared %v later", time.Since(start).Round(time.Millisecond))
			if err := c.Client.Delete(t.Context(), rule); err != nil {
				t.Fatal(err)
			}
			gone(t, c, rule)
			testenv.Eventually(t, "the API server to accept a conflict with the deleted rule", func(ctx context.Context) error { return try(ctx, c, twinOf(rule)) })
		})
	}
}

// renewCRD deletes the CRD, with all rules, and installs it again.
func renewCRD(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	crd := crdObject()
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.CRDName}, crd); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	gone(t, c, crd)
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name}
	c.Create(t, crd)
	testenv.Eventually(t, "the CRD to be served", func(ctx context.Context) error {
		return c.Client.List(ctx, &v1alpha1.NodeReadinessRuleList{})
	})
}
