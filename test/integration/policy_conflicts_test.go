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

// ruleFrom is the valid rule of this name, edited. {id} in the edits stands for the pool.
func ruleFrom(t *testing.T, id, name string, changes edits) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(edited(t, id, changes), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetName(name)
	return obj
}

// try creates the rule without leaving it there.
func try(ctx context.Context, c *testenv.Cluster, rule client.Object) error {
	return c.Client.Create(ctx, rule.DeepCopyObject().(client.Object), client.DryRunAll)
}

// conflictsWith says whether the answer is a refusal because of this rule.
func conflictsWith(answer error, rule string) bool {
	return answer != nil && strings.Contains(answer.Error(), "'"+admission.ConflictsName+"'") && strings.Contains(answer.Error(), `rule "`+rule+`" manages the taint`)
}

// twinOf is the same rule under another name, in conflict with it in any case.
func twinOf(rule *unstructured.Unstructured) *unstructured.Unstructured {
	twin := &unstructured.Unstructured{Object: map[string]any{"spec": rule.DeepCopy().Object["spec"]}}
	twin.SetGroupVersionKind(rule.GroupVersionKind())
	twin.SetName(rule.GetName() + "-twin")
	return twin
}

// looked waits until the API server compares new rules with this one. It has then seen all
// that was written before.
func looked(t *testing.T, c *testenv.Cluster, rule *unstructured.Unstructured) {
	t.Helper()
	testenv.Eventually(t, "a refusal because of "+rule.GetName(), func(ctx context.Context) error {
		if answer := try(ctx, c, twinOf(rule)); !conflictsWith(answer, rule.GetName()) {
			return fmt.Errorf("the answer is %v", answer)
		}
		return nil
	})
}

// lookedAround is looked for what was written before, whatever it is.
func lookedAround(t *testing.T, c *testenv.Cluster, id string) {
	t.Helper()
	last := ruleFrom(t, id+"-last", id+"-last", nil)
	c.Create(t, last)
	looked(t, c, last)
}

func zone(operator string, values ...string) edits {
	if len(values) == 0 {
		return expression(fmt.Sprintf("{key: zone, operator: %s}", operator))
	}
	return expression(fmt.Sprintf("{key: zone, operator: %s, values: [%s]}", operator, strings.Join(values, ", ")))
}

// What is refused and what is not, pair by pair: rules of one pool, edited.
func TestARuleIsRefusedExactlyIfItConflicts(t *testing.T) {
	is := func(path, value string) edits { return edits{path: value} }
	const label = "spec.nodeSelector.matchLabels.zone"
	tests := map[string]struct {
		existing, created edits
		refused           bool
	}{
		"the same selector":            {nil, nil, true},
		"a narrower selector":          {nil, zone("In", "a"), true},
		"In, one value in common":      {zone("In", "a", "b"), zone("In", "b", "c"), true},
		"In, NotIn all but one":        {zone("In", "a", "b"), zone("NotIn", "a"), true},
		"NotIn, NotIn":                 {zone("NotIn", "a"), zone("NotIn", "b"), true},
		"NotIn, DoesNotExist":          {zone("NotIn", "a"), zone("DoesNotExist"), true},
		"Exists, In":                   {zone("Exists"), zone("In", "a"), true},
		"Exists, NotIn":                {zone("Exists"), zone("NotIn", "a"), true},
		"DoesNotExist, DoesNotExist":   {zone("DoesNotExist"), zone("DoesNotExist"), true},
		"another label":                {zone("In", "a"), expression("{key: rack, operator: In, values: [b]}"), true},
		"a label of no value":          {is(label, "null"), is(label, `""`), true},
		"lists that are null":          {is("spec.nodeSelector.matchExpressions", "null"), is("spec.nodeSelector.matchExpressions", "null"), true},
		"another value of the taint":   {nil, is("spec.taint.value", "other"), true},
		"a preview that says it isn't": {nil, is("spec.dryRun", "false"), true},
		"a preview of null":            {nil, is("spec.dryRun", "null"), true},

		"other labels":               {is(label, "a"), is(label, "b"), false},
		"a label, and of no value":   {is(label, "a"), is(label, "null"), false},
		"In, other values":           {zone("In", "a", "b"), zone("In", "c", "d"), false},
		"In, NotIn all":              {zone("In", "a", "b"), zone("NotIn", "a", "b", "c"), false},
		"NotIn, a label":             {zone("NotIn", "a", "b"), is(label, "a"), false},
		"In, DoesNotExist":           {zone("In", "a"), zone("DoesNotExist"), false},
		"DoesNotExist, Exists":       {zone("DoesNotExist"), zone("Exists"), false},
		"apart only by both of them": {expression("{key: zone, operator: In, values: [a, b]}, {key: zone, operator: NotIn, values: [b]}"), zone("NotIn", "a"), false},
		"another effect":             {nil, is("spec.taint.effect", "PreferNoSchedule"), false},
		"another key":                {nil, is("spec.taint.key", "readiness.k8s.io/{id}-other"), false},
		"a preview":                  {nil, is("spec.dryRun", "true"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			existing := ruleFrom(t, id, id, tc.existing)
			c.Create(t, existing)
			looked(t, c, existing)
			answer := try(t.Context(), c, ruleFrom(t, id, id+"-new", tc.created))
			switch {
			case tc.refused && !conflictsWith(answer, id):
				t.Errorf("must be refused because of the other, got %v", answer)
			case !tc.refused && answer != nil:
				t.Errorf("refused: %v", answer)
			}
		})
	}
}

// A rule that does nothing, or soon will, is in nobody's way.
func TestARuleThatTakesNoPartIsInNobodysWay(t *testing.T) {
	is := func(reason string) func(*v1alpha1.NodeReadinessRule) bool {
		return testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, reason)
	}
	tests := map[string]func(t *testing.T, c *testenv.Cluster, id string){
		"a preview": func(t *testing.T, c *testenv.Cluster, id string) {
			c.Create(t, ruleFrom(t, id, id, edits{"spec.dryRun": "true"}))
		},
		"a rule that is being deleted": func(t *testing.T, c *testenv.Cluster, id string) {
			rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{"example.com/keep"} })
			c.Create(t, rule)
			if err := c.Client.Delete(t.Context(), rule); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				merge := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				_ = c.Client.Patch(context.Background(), rule, merge)
			})
		},
		"a rule that cannot be enforced": func(t *testing.T, c *testenv.Cluster, id string) {
			c.Create(t, ruleFrom(t, id, id, edits{"spec.nodeSelector.matchLabels.node pool": "a"}))
			c.EventuallyRule(t, id, "invalid", is(v1alpha1.ReasonInvalid))
		},
		"a rule that has lost a conflict": func(t *testing.T, c *testenv.Cluster, id string) {
			winner := ruleFrom(t, id, id+"-winner", zone("In", "a"))
			c.Create(t, winner)
			testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, winner) })
			c.Create(t, ruleFrom(t, id, id, zone("In", "a", "b").and(edits{"spec.dryRun": "true"})))
			flip(t, c, id)
			c.EventuallyRule(t, id, "in conflict", is(v1alpha1.ReasonConflict))
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, id := cluster(t), nameOf(t)
			prepare(t, c, id)
			lookedAround(t, c, id)
			created := ruleFrom(t, id, id+"-new", zone("In", "b"))
			c.Create(t, created)
			c.EventuallyRule(t, created.GetName(), "accepted", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
		})
	}
}

// A pair that is too large to be compared in a request is not refused because of that: it is
// settled at runtime.
func TestARuleTooLargeToCompareIsSettledAtRuntime(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	// Every label can be only one value, and that is the last one of each list.
	large := func(prefix string) edits {
		values := times(255, prefix+"%d") + ", last"
		return expression(times(64, "{key: example.com/label-%d, operator: In, values: ["+values+"]}"))
	}
	existing, created := ruleFrom(t, id, id, large("a")), ruleFrom(t, id, id+"-new", large("b"))
	c.Create(t, existing)
	lookedAround(t, c, id)
	testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, existing) })
	c.Create(t, created)
	c.EventuallyRule(t, created.GetName(), "in conflict", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict))
}

// flip makes a preview enforce.
func flip(t *testing.T, c *testenv.Cluster, name string) {
	t.Helper()
	rule := &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Patch(t, rule, func() { rule.Spec.DryRun = false })
}

// What a user reads, word for word, in every way in which a rule can be created.
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
			t.Fatalf("kubectl %s: not refused", args)
		}
		_, printed, _ := strings.Cut(err.Error(), "\n")
		if !strings.HasPrefix(printed, "Error from server (Forbidden): ") || !strings.HasSuffix(strings.TrimSpace(printed), reason) {
			t.Errorf("kubectl %s says\n%s\nwant\n%s", args, printed, reason)
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

// Two previews that are made to enforce slip through: the runtime check settles it, and
// nobody is kept from changing or deleting what is there already.
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
			t.Errorf("says %q", said)
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
			t.Errorf("kubectl says %q the second time", out)
		}
		k.Run(t, "apply", "--server-side", "--force-conflicts", "-f", "rule.yaml")
		k.Replace(t, "rule.yaml")
	}
	conflict()
	for _, name := range []string{loser, winner} {
		k.Run(t, "delete", "nrr", name, "--wait=false")
		gone(t, c, &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// setForeignCondition writes the status, as somebody else may.
func setForeignCondition(t *testing.T, c *testenv.Cluster, name string) {
	t.Helper()
	merge := client.RawPatch(types.MergePatchType, []byte(`{"status":{"appliedNodes":["none"]}}`))
	if err := c.Client.Status().Patch(t.Context(), &v1alpha1.NodeReadinessRule{ObjectMeta: metav1.ObjectMeta{Name: name}}, merge); err != nil {
		t.Fatalf("writing the status of %s: %v", name, err)
	}
}

// Whatever takes the policy away for a while: rules can be created in the meantime, the
// runtime check settles what slips through, and the policy that comes back knows the rules
// as they are then.
func TestNoRuleIsBlockedForGood(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=1s")
	settled := func(t *testing.T, id string) {
		t.Helper()
		first := ruleFrom(t, id, id, nil)
		c.Create(t, first)
		testenv.Eventually(t, "a later second", func(ctx context.Context) error { return orderedAfter(ctx, c, first) })
		testenv.Eventually(t, "a rule that slips through", func(ctx context.Context) error { return c.Client.Create(ctx, twinOf(first)) })
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
			c.Create(t, rule) // never refused, not even now
			looked(t, c, rule)
			t.Logf("rules are compared %v later", time.Since(start).Round(time.Millisecond))
			if err := c.Client.Delete(t.Context(), rule); err != nil {
				t.Fatal(err)
			}
			gone(t, c, rule)
			testenv.Eventually(t, "the rule to be forgotten", func(ctx context.Context) error { return try(ctx, c, twinOf(rule)) })
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
