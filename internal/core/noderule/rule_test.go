package noderule_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// What compiles to the same rule is not compiled again, and nodes are not looked at again:
// nothing that decisions depend on may be missing here.
func TestSameRuleComparesEverythingThatDecisionsUse(t *testing.T) {
	newGeneration := func(r *v1alpha1.NodeReadinessRule) { r.Generation = 2; r.Spec.DryRun = true }
	replaced := func(r *v1alpha1.NodeReadinessRule) { r.UID = "another" }
	status := func(r *v1alpha1.NodeReadinessRule) {
		r.ResourceVersion = "77"
		r.Status.ObservedGeneration = 1
		r.Status.AppliedNodes = []string{"n1"}
	}
	boot := func(change ruleOption) ruleOption {
		return func(r *v1alpha1.NodeReadinessRule) { bootstrapOnly(r); change(r) }
	}
	dry := func(change ruleOption) ruleOption {
		return func(r *v1alpha1.NodeReadinessRule) { dryRun(r); change(r) }
	}
	labelled := func(r *v1alpha1.NodeReadinessRule) { r.Labels = map[string]string{"team": "net"} }
	for name, c := range map[string]struct {
		before, after ruleOption
		same          bool
	}{
		"nothing":                            {status, status, true},
		"its status":                         {labelled, status, true},
		"its labels":                         {status, labelled, true},
		"its spec":                           {status, newGeneration, false},
		"it is being deleted":                {status, deleting, false},
		"it was replaced under its name":     {status, replaced, false},
		"it was taken over":                  {boot(status), boot(takenOverAt(noon)), false},
		"it was taken over at another time":  {boot(takenOverAt(dayOne)), boot(takenOverAt(noon)), false},
		"the same time in another zone":      {boot(takenOverAt(noon)), boot(takenOverAt(noon.In(time.FixedZone("CET", 3600)))), true},
		"a continuous one was taken over":    {status, takenOverAt(noon), true},
		"it was seen to preview":             {dry(status), dry(previewsSince(noon)), false},
		"it previews since another time":     {dry(previewsSince(dayOne)), dry(previewsSince(noon)), false},
		"one that is enforced had previewed": {status, previewsSince(noon), true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := rule("net", c.before), rule("net", c.after)
			if got := noderule.SameRule(before, after); got != c.same {
				t.Errorf("SameRule: got %t, want %t", got, c.same)
			}
			if got := compiled(before).IsOf(after); got != c.same {
				t.Errorf("IsOf: got %t, want %t", got, c.same)
			}
		})
	}
}

func TestActiveRules(t *testing.T) {
	for name, c := range map[string]struct {
		option ruleOption
		want   bool
	}{
		"an ordinary rule makes demands":     {bootstrapOnly, true},
		"a rule being deleted does not":      {deleting, false},
		"a rule that only previews does not": {dryRun, false},
		"an invalid rule does not":           {taintKey(notReady), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compiled(rule("net", c.option)).Active(); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
